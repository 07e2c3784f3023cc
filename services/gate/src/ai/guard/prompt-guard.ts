// Judges prompts: the probability that a text is a prompt injection.
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { encodeConcepts } from "./concepts.ts";
import { CONCEPT_RULES, type GuardRule, MARKUP_RULES } from "./guard-rules.ts";
import { normalizeText } from "./normalize-text.ts";

/** Longer texts are judged in pieces, which overlap. */
const PIECE_CHARACTERS = 16_384;
const OVERLAP_CHARACTERS = 1_024;

/** Probability from 0 to 1 that a text is an attack, by all rules together: 1 − ∏(1 − weight). */
export function scoreText(text: string): number {
  const normalized = normalizeText(text);
  const code = encodeConcepts(normalized);
  let innocence = 1;
  for (const rule of CONCEPT_RULES) if (matches(rule, code, true)) innocence *= 1 - rule.weight;
  for (const rule of MARKUP_RULES)
    if (matches(rule, normalized, false)) innocence *= 1 - rule.weight;
  return 1 - innocence;
}

function matches({ needs, pattern }: GuardRule, text: string, isCode: boolean): boolean {
  if (!isCode) return text.includes(needs) && pattern.matcher(text).find();
  for (const concept of needs) if (!text.includes(concept)) return false;
  return pattern.matcher(text).find();
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
