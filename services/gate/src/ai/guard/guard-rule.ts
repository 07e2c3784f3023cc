// A rule of the prompt guard: a pattern with its weight.
import { RE2JS } from "re2js";

/** A rule over the code of a text, or over the text itself. */
export interface GuardRule {
  /** Compiled at its first use: workers without a guard need none of them. */
  readonly pattern: RE2JS;
  /** Probability that a text with this combination is an attack. */
  readonly weight: number;
  /** Parts without which the rule cannot match: they are looked for first. */
  readonly needs: readonly string[];
  /** Matches wherever the rule does, and costs a tenth: looked for before the rule. */
  readonly near?: RegExp | undefined;
}

/** A rule over codes (`concepts.ts`); `needs` are concepts, all of which must be there. */
export function codeRule(needs: string, pattern: string, weight: number): GuardRule {
  return createRule(Array.from(needs), pattern, weight);
}

/** A rule over normalized texts; `needs` is a text that must be there, `near` a pattern that costs little. */
export function textRule(needs: string, pattern: string, weight: number, near?: string): GuardRule {
  return createRule([needs], pattern, weight, near);
}

function createRule(
  needs: readonly string[],
  source: string,
  weight: number,
  near?: string,
): GuardRule {
  let compiled: RE2JS | undefined;
  return {
    needs,
    weight,
    near: near === undefined ? undefined : new RegExp(near),
    get pattern() {
      return (compiled ??= RE2JS.compile(source));
    },
  };
}
