// Judges prompts: the probability that a text is a prompt injection.
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { encodeConcepts } from "./concepts.ts";
import type { GuardRule } from "./guard-rule.ts";
import { CONCEPT_RULES, MARKUP_RULES } from "./guard-rules.ts";
import { ADDRESS_RULES, ORDER_RULES, READER_WORDS } from "./indirect-rules.ts";
import { normalizeText } from "./normalize-text.ts";

/** Longer texts are judged in pieces, which overlap. */
const PIECE_CHARACTERS = 6_144;
const OVERLAP_CHARACTERS = 1_024;
const ORDER_WEIGHT_MAX = 0.7;

/**
 * Probability from 0 to 1 that a text is an attack, by all rules together: 1 − ∏(1 − weight). Of the rules about whom a text
 * addresses only the strongest counts; those about what it orders count if it addresses a model, up to a limit.
 */
export function scoreText(text: string): number {
  const normalized = normalizeText(text);
  const code = encodeConcepts(normalized);
  const direct = leave(CONCEPT_RULES, code) * leave(MARKUP_RULES, normalized);
  const address = READER_WORDS.test(normalized) ? findStrongest(ADDRESS_RULES, normalized) : 0;
  const order = address === 0 ? 0 : Math.min(1 - leave(ORDER_RULES, normalized), ORDER_WEIGHT_MAX);
  return 1 - direct * (1 - address) * (1 - order);
}

/** Compiles all rules, so that no prompt waits for that. */
export function compileRules(): void {
  for (const rules of [CONCEPT_RULES, MARKUP_RULES, ADDRESS_RULES, ORDER_RULES]) {
    for (const rule of rules) void rule.pattern;
  }
}

// The probability that is left for a harmless text.
function leave(rules: readonly GuardRule[], text: string): number {
  let innocence = 1;
  for (const rule of rules) if (matches(rule, text)) innocence *= 1 - rule.weight;
  return innocence;
}

function findStrongest(rules: readonly GuardRule[], text: string): number {
  let strongest = 0;
  for (const rule of rules)
    if (rule.weight > strongest && matches(rule, text)) strongest = rule.weight;
  return strongest;
}

function matches(rule: GuardRule, text: string): boolean {
  for (const part of rule.needs) if (!text.includes(part)) return false;
  return rule.near?.test(text) !== false && rule.pattern.matcher(text).find();
}

/** Scores of texts, with those of texts that were judged before. */
export class PromptGuard {
  readonly #rememberedMax: number;
  readonly #scores = new Map<string, number>();

  constructor(rememberedMax = 10_000) {
    this.#rememberedMax = rememberedMax;
  }

  /** The score of a text; long ones are judged in pieces, between which other work goes on. */
  judge(text: string): number | Promise<number> {
    const digest = createHash("sha256").update(text).digest("base64");
    const known = this.#scores.get(digest);
    if (known !== undefined) return known;
    if (text.length <= PIECE_CHARACTERS) return this.#remember(digest, scoreText(text));
    return judgeLong(text).then((score) => this.#remember(digest, score));
  }

  #remember(digest: string, score: number): number {
    if (this.#scores.size >= this.#rememberedMax) {
      const [oldest] = this.#scores.keys();
      this.#scores.delete(oldest!);
    }
    this.#scores.set(digest, score);
    return score;
  }
}

async function judgeLong(text: string): Promise<number> {
  let score = 0;
  for (let at = 0; at < text.length; at += PIECE_CHARACTERS - OVERLAP_CHARACTERS) {
    score = Math.max(score, scoreText(text.slice(at, at + PIECE_CHARACTERS)));
    await setImmediate();
  }
  return score;
}
