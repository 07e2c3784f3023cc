// Stored answers of models of one worker: in the memory that all workers share, under digests of their questions.
import { createHash } from "node:crypto";
import type { CacheKeys } from "../../cache/cache-key.ts";
import type { GateExchange } from "../../exchange/exchange.ts";
import type {
  CacheKey,
  CacheMoment,
  SharedCache,
  SimilarQuestion,
} from "../../shared-state/index.ts";
import type { Question } from "./question.ts";
import { normalizeQuestion } from "./question-words.ts";
import { parseStored, type StoredAnswer } from "./stored-answer.ts";

const NO_BYTES = Buffer.alloc(0);
const STATUS = 200;

/** Questions whose meaning is alike, in the control plane. */
interface SimilarQuestions {
  /** Finds the stored question that is most alike; undefined if there is none, or none that could be looked for. */
  find(question: {
    scope: string;
    text: string;
    threshold: number;
  }): Promise<SimilarQuestion | undefined>;
  /** Adds a question whose answer is stored under `digest`. */
  add(question: { scope: string; text: string; digest: string; ttlMs: number }): void;
}

/** Options of {@link SemanticCache}. */
export interface SemanticCacheOptions {
  readonly store: SharedCache;
  readonly keys: CacheKeys;
  readonly similar: SimilarQuestions;
  /** Milliseconds since 1970. */
  readonly readTimeMs: () => number;
}

/** A stored answer, and how much its question is alike. */
export interface FoundAnswer {
  readonly answer: StoredAnswer;
  /** Cosine of the vectors; 1 for an equal question. */
  readonly similarity: number;
}

/** A place for the answer to a request that is not stored. */
export interface AnswerPlace {
  readonly key: CacheKey;
  readonly moment: CacheMoment;
  readonly digest: string;
}

/** The stored answers. */
export class SemanticCache {
  readonly #options: SemanticCacheOptions;
  /** Set by the configuration: vectors of questions are compared. */
  hasVectors = false;

  constructor(options: SemanticCacheOptions) {
    this.#options = options;
  }

  /** The answer to the same question. */
  find(exchange: GateExchange, question: Question): FoundAnswer | undefined {
    const answer = this.#read(exchange, digestQuestion(question));
    return answer && { answer, similarity: 1 };
  }

  /** The answer to a question that is alike. */
  async findSimilar(
    exchange: GateExchange,
    { scope, text }: Question,
    threshold: number,
  ): Promise<FoundAnswer | undefined> {
    const { sequence } = exchange;
    const found = await this.#options.similar.find({ scope, text, threshold });
    if (found === undefined || exchange.sequence !== sequence) return undefined;
    const answer = this.#read(exchange, found.digest);
    return answer && { answer, similarity: found.similarity };
  }

  /** Prepares storing the answer; before the request goes up, so that an invalidation in between counts. */
  prepare(exchange: GateExchange, question: Question): AnswerPlace | undefined {
    const digest = digestQuestion(question);
    const key = this.#buildKey(exchange, digest);
    if (key === undefined) return undefined;
    const copied = { ...key, bytes: Buffer.from(key.bytes) };
    return { key: copied, moment: this.#options.store.readMoment(key.resourceHash), digest };
  }

  /** Stores an answer. */
  store(
    { key, moment, digest }: AnswerPlace,
    { scope, text }: Question,
    answer: StoredAnswer,
    ttlMs: number,
  ): void {
    const { store, similar, readTimeMs } = this.#options;
    const record = {
      status: STATUS,
      flags: 0,
      responseAtMs: readTimeMs(),
      initialAgeMs: 0,
      lifetimeMs: ttlMs,
      staleWhileRevalidateMs: 0,
      staleIfErrorMs: 0,
    };
    const entry = store.begin(key, NO_BYTES, NO_BYTES, record, moment);
    if (entry === -1) return;
    if (!store.append(entry, Buffer.from(JSON.stringify(answer)))) {
      store.discard(entry);
      return;
    }
    if (store.publish(entry) && this.hasVectors) similar.add({ scope, text, digest, ttlMs });
  }

  #read(exchange: GateExchange, digest: string): StoredAnswer | undefined {
    const { store, readTimeMs } = this.#options;
    const key = this.#buildKey(exchange, digest);
    const entry = key === undefined ? -1 : store.find(key);
    if (entry === -1) return undefined;
    try {
      const { responseAtMs, lifetimeMs, bodyBytes } = store.read(entry);
      const nowMs = readTimeMs();
      if (nowMs - responseAtMs >= lifetimeMs) return undefined;
      store.touch(entry, nowMs);
      return parseStored(store.readBody(entry, 0, bodyBytes, false).toString("utf8"));
    } finally {
      store.unpin(entry);
    }
  }

  // Successful POSTs invalidate the resource of their path, but not these answers: their key is a resource of its own.
  #buildKey(exchange: GateExchange, digest: string): CacheKey | undefined {
    const { keys } = this.#options;
    const route = exchange.userData.route!.spec.key;
    const key = keys.build(exchange, `${route} answers`, digest);
    return key && { ...key, resourceHash: key.hashA };
  }
}

function digestQuestion({ scope, text }: Question): string {
  const question = normalizeQuestion(text);
  return createHash("sha256").update(`${scope}\n${question}`).digest("base64url");
}
