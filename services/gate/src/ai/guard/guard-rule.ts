// A rule of the prompt guard: a pattern with its weight.
import { RE2JS } from "re2js";

/** A rule over the code of a text, or over the text itself. */
export interface GuardRule {
  /** Probability that a text with this combination is an attack. */
  readonly weight: number;
  /** Place of the first match; -1 without one. */
  find(text: string): number;
  /** Compiles the pattern, which happens at the first use otherwise: workers without a guard need none. */
  compile(): void;
}

/** A rule over codes (`concepts.ts`); `needs` are concepts, all of which must be there. */
export function codeRule(needs: string, pattern: string, weight: number): GuardRule {
  return createLinearRule(Array.from(needs), pattern, weight);
}

/** A rule over normalized texts; `needs` is a text that must be there, `near` a pattern that costs little. */
export function textRule(needs: string, pattern: string, weight: number, near?: string): GuardRule {
  return createLinearRule([needs], pattern, weight, near);
}

/**
 * A rule in JavaScript's own regular expressions, which are ten times faster than RE2, over normalized texts or codes: each
 * repetition has a bound, so that the time per character has one, too. `needs` is a text that must be there, `near` a
 * pattern of plain words. Throws `SyntaxError` for a repetition without a bound.
 */
export function boundedRule(
  needs: string,
  source: string,
  weight: number,
  near?: string,
): GuardRule {
  if (UNBOUNDED.test(source.replaceAll(CLASS_OR_ESCAPE, "")))
    throw new SyntaxError(`A repetition has no bound: ${source}`);
  return createRule([needs], weight, near, () => {
    const pattern = new RegExp(source);
    return (text) => text.search(pattern);
  });
}

const CLASS_OR_ESCAPE = /\\.|\[\^?(?:\\.|[^\]\\])*\]/g;
const UNBOUNDED = /[*+]|\{\d+,\}/;

function createLinearRule(
  needs: readonly string[],
  source: string,
  weight: number,
  near?: string,
): GuardRule {
  return createRule(needs, weight, near, () => {
    const pattern = RE2JS.compile(source);
    return (text) => {
      const matcher = pattern.matcher(text);
      return matcher.find() ? matcher.start() : -1;
    };
  });
}

function createRule(
  needs: readonly string[],
  weight: number,
  near: string | undefined,
  compile: () => (text: string) => number,
): GuardRule {
  const isNear = near === undefined ? undefined : new RegExp(near);
  let compiled: ((text: string) => number) | undefined;
  const find = (text: string): number => {
    for (const part of needs) if (!text.includes(part)) return -1;
    if (isNear?.test(text) === false) return -1;
    return (compiled ??= compile())(text);
  };
  return { weight, find, compile: () => void (compiled ??= compile()) };
}
