// Vectors of the questions whose answers are stored, searched off the threads that serve requests.
import {
  mayShareAnswer,
  type QuestionMeaning,
  readMeaning,
} from "../ai/semantic/question-words.ts";
import type { SimilarQuestion } from "../shared-state/index.ts";

const SCOPE_QUESTIONS_MAX = 1_000;
const BYTES_MAX = 67_108_864;
/** Vectors of questions that were looked for, and whose answers may be stored soon. */
const RECENT_MAX = 1_000;
/** Memory of a question beside its vector: words and bookkeeping, per character of its text. */
const BYTES_PER_CHARACTER = 8;
const BYTES_PER_QUESTION = 512;

interface StoredQuestion {
  readonly digest: string;
  readonly vector: Float32Array;
  readonly meaning: QuestionMeaning;
  readonly bytes: number;
  readonly expiresAtMs: number;
}

/** Options of {@link SemanticIndex}. */
export interface SemanticIndexOptions {
  /** The vector of a text, of length 1; undefined if there is none now. Never rejects. */
  readonly embed: (text: string) => Promise<Float32Array | undefined>;
  readonly readNowMs: () => number;
}

/** The questions of all scopes; scopes that were not used for the longest time are forgotten first. */
export class SemanticIndex {
  readonly #options: SemanticIndexOptions;
  readonly #scopes = new Map<string, StoredQuestion[]>();
  readonly #recent = new Map<string, Float32Array>();
  #bytes = 0;

  constructor(options: SemanticIndexOptions) {
    this.#options = options;
  }

  /** Memory of all questions. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The question of a scope that is most alike, above the threshold; undefined if there is none. */
  async find(scope: string, text: string, threshold: number): Promise<SimilarQuestion | undefined> {
    const vector = await this.#embed(text);
    const questions = this.#scopes.get(scope);
    if (vector === undefined || questions === undefined) return undefined;
    this.#scopes.delete(scope);
    this.#scopes.set(scope, questions);
    const meaning = readMeaning(text);
    const nowMs = this.#options.readNowMs();
    let best: SimilarQuestion | undefined;
    for (const stored of questions) {
      if (stored.expiresAtMs <= nowMs || stored.vector.length !== vector.length) continue;
      const similarity = multiply(vector, stored.vector);
      if (similarity <= Math.max(threshold, best?.similarity ?? -1)) continue;
      if (mayShareAnswer(meaning, stored.meaning)) best = { digest: stored.digest, similarity };
    }
    return best;
  }

  /** Adds a question whose answer is stored under `digest`. */
  async add(scope: string, text: string, digest: string, ttlMs: number): Promise<void> {
    const vector = await this.#embed(text);
    if (vector === undefined) return;
    const nowMs = this.#options.readNowMs();
    const bytes = vector.byteLength + text.length * BYTES_PER_CHARACTER + BYTES_PER_QUESTION;
    const known = this.#scopes.get(scope) ?? [];
    // A service that returns another dimension has another model: the others can no longer be found.
    const kept = known.filter(
      (stored) =>
        stored.digest !== digest &&
        stored.expiresAtMs > nowMs &&
        stored.vector.length === vector.length,
    );
    if (kept.length >= SCOPE_QUESTIONS_MAX) kept.shift();
    const meaning = readMeaning(text);
    kept.push({ digest, vector, meaning, bytes, expiresAtMs: nowMs + ttlMs });
    this.#bytes += sumBytes(kept) - sumBytes(known);
    this.#scopes.delete(scope);
    this.#scopes.set(scope, kept);
    this.#makeRoom();
  }

  async #embed(text: string): Promise<Float32Array | undefined> {
    const recent = this.#recent.get(text);
    if (recent !== undefined) return recent;
    const vector = await this.#options.embed(text);
    if (vector === undefined) return undefined;
    const [oldest] = this.#recent.keys();
    if (this.#recent.size >= RECENT_MAX && oldest !== undefined) this.#recent.delete(oldest);
    this.#recent.set(text, vector);
    return vector;
  }

  #makeRoom(): void {
    for (const [scope, questions] of this.#scopes) {
      if (this.#bytes <= BYTES_MAX) return;
      this.#bytes -= sumBytes(questions);
      this.#scopes.delete(scope);
    }
  }
}

function sumBytes(questions: readonly StoredQuestion[]): number {
  return questions.reduce((sum, { bytes }) => sum + bytes, 0);
}

function multiply(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < one.length; at++) sum += one[at]! * other[at]!;
  return sum;
}
