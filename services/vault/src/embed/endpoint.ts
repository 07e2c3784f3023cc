// Embeddings of an endpoint with OpenAI's API: POST {url}/embeddings, in batches.
import { DIMENSION_MAX, type Embedder, encodeVector, RefusedTextError } from "../model/vector.ts";
import { type ModelEndpoint, requestModel } from "./model-request.ts";

const BATCH_MAX = 64;
/** Time in which texts gather. */
const GATHER_MS = 20;
const TIMEOUT_MS = 60_000;
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

interface Waiter {
  readonly text: string;
  readonly dimension: number;
  readonly resolve: (vector: Uint8Array) => void;
  readonly reject: (error: unknown) => void;
}

/** Requests embeddings. Texts that arrive together are one request. */
export class EndpointEmbedder implements Embedder {
  readonly #endpoint: ModelEndpoint;
  readonly #waiting: Waiter[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(endpoint: ModelEndpoint) {
    this.#endpoint = endpoint;
  }

  embed(text: string, dimension: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ text, dimension, resolve, reject });
      if (this.#waiting.length >= BATCH_MAX) this.#flush();
      else this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS);
    });
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#waiting.splice(0, BATCH_MAX);
    void this.#request(batch).catch((error: unknown) => {
      // One text may be the reason for the refusal of all: each is tried alone.
      if (error instanceof RefusedTextError && batch.length > 1) {
        for (const one of batch) void this.#request([one]).catch(one.reject);
      } else for (const { reject } of batch) reject(error);
    });
  }

  async #request(batch: readonly Waiter[]): Promise<void> {
    const { status, text } = await requestModel(
      this.#endpoint,
      "/embeddings",
      { input: batch.map((waiter) => waiter.text), encoding_format: "float" },
      { timeoutMs: TIMEOUT_MS, answerBytesMax: ANSWER_BYTES_MAX },
    );
    if ([400, 413, 422].includes(status)) {
      throw new RefusedTextError(`the endpoint answers ${status}`);
    }
    if (status < 200 || status > 299) throw new Error(`the endpoint answers ${status}`);
    const vectors = readVectors(text, batch.length);
    for (const [index, { dimension, resolve, reject }] of batch.entries()) {
      const vector = vectors[index]!;
      if (vector.length === dimension) resolve(encodeVector(vector));
      else {
        const reason = `the model has ${vector.length} dimensions, the index ${dimension}`;
        reject(new RefusedTextError(reason));
      }
    }
  }
}

// {"data": [{"index": 0, "embedding": [0.1, …]}, …]}
function readVectors(body: string, count: number): number[][] {
  const failed = new Error("the answer of the endpoint is not a list of embeddings");
  let data: unknown;
  try {
    data = (JSON.parse(body) as { data?: unknown } | null)?.data;
  } catch {
    throw failed;
  }
  if (!Array.isArray(data) || data.length !== count) throw failed;
  const vectors: number[][] = [];
  for (const [position, item] of (data as unknown[]).entries()) {
    const { index = position, embedding } = (item ?? {}) as {
      index?: unknown;
      embedding?: unknown;
    };
    if (!Number.isInteger(index) || !isVector(embedding)) throw failed;
    vectors[index as number] = embedding;
  }
  if (vectors.filter((vector) => vector !== undefined).length !== count) throw failed;
  return vectors;
}

function isVector(value: unknown): value is number[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > DIMENSION_MAX) return false;
  return value.every(
    (number) => typeof number === "number" && Number.isFinite(Math.fround(number)),
  );
}
