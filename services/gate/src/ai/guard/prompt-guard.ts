// Judges prompts: the probability that a text is a prompt injection.
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { encodeConcepts } from "./concepts.ts";
import { CUE_RULES } from "./cue-rules.ts";
import { encodePassages } from "./cues.ts";
import { DIRECT_RULES } from "./direct-rules.ts";
import type { GuardRule } from "./guard-rule.ts";
import { CONCEPT_RULES, MARKUP_RULES } from "./guard-rules.ts";
import { ADDRESS_RULES, ORDER_RULES, READER_WORDS } from "./indirect-rules.ts";
import { SESSION_ORDER_RULES, SESSION_RULES, SESSION_WORDS } from "./session-rules.ts";
import { normalizeText } from "./normalize-text.ts";
import { judgeWording, readWeights } from "./wording-model.ts";

/** Longer texts are judged in pieces, which overlap. */
const PIECE_CHARACTERS = 6_144;
const OVERLAP_CHARACTERS = 1_024;
/** Texts that are longer than what people type. */
const LONG_CHARACTERS = 1_500;
const LONG_EXPONENT = 0.7;
const TYPED_EXPONENT = 1.6;
const ORDER_WEIGHT_MAX = 0.7;
/** Characters between a reference to the session and what it orders. */
const ORDER_DISTANCE = 300;
/** Below this the model finds a text harmless, and what the rules suspect counts less. */
const SUSPECTED_FROM = 0.2;
/** Wordings alone must be nearly certain. */
const WORDING_EXPONENT = 2;

/**
 * Probability from 0 to 1 that a text is an attack, by the rules and by the model of wordings together. They err on different
 * texts: the model knows attacks that no rule describes, and harmless texts that have the words of one. It has learned what
 * people type: data is judged by the rules.
 */
export function scoreText(text: string, isData = false): number {
  const normalized = normalizeText(text);
  const rules = scoreByRules(normalized, isData);
  if (isData) return rules;
  const wording = judgeWording(normalized);
  const suspicion = rules * Math.min(1, wording / SUSPECTED_FROM);
  return 1 - (1 - wording ** WORDING_EXPONENT) * (1 - suspicion);
}

/**
 * All rules together: 1 − ∏(1 − weight). Of the rules about whom a text addresses only the strongest counts; those about what
 * it orders count if it addresses a model, up to a limit. What is short enough to be typed has little room for chance: there,
 * all counts more. Data is also judged by whether it speaks of the session that reads it.
 */
function scoreByRules(normalized: string, isData: boolean): number {
  const isTyped = !isData && normalized.length <= LONG_CHARACTERS;
  const spoken = scoreNormalized(normalized, isTyped ? TYPED_EXPONENT : 1);
  return isData ? Math.max(spoken, scoreSession(normalized)) : spoken;
}

function scoreNormalized(normalized: string, exponent: number): number {
  const code = encodeConcepts(normalized);
  const direct =
    leave(CONCEPT_RULES, code) *
    leave(MARKUP_RULES, normalized) *
    leave(DIRECT_RULES, normalized) *
    leavePassages(normalized);
  const address = READER_WORDS.test(normalized) ? findStrongest(ADDRESS_RULES, normalized) : 0;
  const order = address === 0 ? 0 : Math.min(1 - leave(ORDER_RULES, normalized), ORDER_WEIGHT_MAX);
  return 1 - direct ** exponent * (1 - address) * (1 - order);
}

// The most suspicious passage counts. Long texts have many, most of them by chance: each counts less.
function leavePassages(normalized: string): number {
  const lowest = Math.min(...encodePassages(normalized).map((code) => leave(CUE_RULES, code)));
  return normalized.length > LONG_CHARACTERS ? lowest ** LONG_EXPONENT : lowest;
}

/**
 * Probability that data is meant for the session that reads it: it speaks of it, and orders something close to that. Long
 * documents have both somewhere.
 */
function scoreSession(normalized: string): number {
  if (!SESSION_WORDS.test(normalized)) return 0;
  let highest = 0;
  for (const rule of SESSION_RULES) {
    const at = rule.find(normalized);
    if (at === -1) continue;
    const near = normalized.slice(Math.max(0, at - ORDER_DISTANCE), at + ORDER_DISTANCE);
    const innocence = leave(SESSION_ORDER_RULES, near) * leave(ORDER_RULES, near);
    const order = Math.min(1 - innocence, ORDER_WEIGHT_MAX);
    highest = Math.max(highest, 1 - (1 - rule.weight) * (1 - order));
  }
  return highest;
}

/** Compiles all rules and reads the model, so that no prompt waits for that. */
export function compileRules(): void {
  readWeights();
  const spoken = [CONCEPT_RULES, MARKUP_RULES, DIRECT_RULES, CUE_RULES, ADDRESS_RULES, ORDER_RULES];
  for (const rules of [...spoken, SESSION_RULES, SESSION_ORDER_RULES])
    for (const rule of rules) rule.compile();
}

// The probability that is left for a harmless text.
function leave(rules: readonly GuardRule[], text: string): number {
  let innocence = 1;
  for (const rule of rules) if (rule.find(text) !== -1) innocence *= 1 - rule.weight;
  return innocence;
}

function findStrongest(rules: readonly GuardRule[], text: string): number {
  let strongest = 0;
  for (const rule of rules)
    if (rule.weight > strongest && rule.find(text) !== -1) strongest = rule.weight;
  return strongest;
}

/** Scores of texts, with those of texts that were judged before. */
export class PromptGuard {
  readonly #rememberedMax: number;
  readonly #scores = new Map<string, number>();

  constructor(rememberedMax = 10_000) {
    this.#rememberedMax = rememberedMax;
  }

  /**
   * The score of a text; long ones are judged in pieces, between which other work goes on. `isData`: it is the result of a
   * tool, which has no reason to order anything.
   */
  judge(text: string, isData = false): number | Promise<number> {
    const digest = `${createHash("sha256").update(text).digest("base64")} ${isData}`;
    const known = this.#scores.get(digest);
    if (known !== undefined) return known;
    if (text.length <= PIECE_CHARACTERS) return this.#remember(digest, scoreText(text, isData));
    return judgeLong(text, isData).then((score) => this.#remember(digest, score));
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

async function judgeLong(text: string, isData: boolean): Promise<number> {
  let score = 0;
  for (let at = 0; at < text.length; at += PIECE_CHARACTERS - OVERLAP_CHARACTERS) {
    score = Math.max(score, scoreText(text.slice(at, at + PIECE_CHARACTERS), isData));
    await setImmediate();
  }
  return score;
}
