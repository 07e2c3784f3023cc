// Vectors of texts from a service with OpenAI's API of embeddings.
import { z } from "zod";
import type { GlobalSpec } from "../shared-state/index.ts";

const TIMEOUT_MS = 800;
const CALLS_MAX = 64;
const ANSWER_BYTES_MAX = 1_048_576;
const DIMENSIONS_MAX = 8_192;
/** After a failure the service is left alone for this time. */
const PAUSE_MS = 5_000;

const answerSchema = z.object({
  data: z.tuple([z.object({ embedding: z.array(z.number()).min(1).max(DIMENSIONS_MAX) })]),
});

type EmbeddingService = NonNullable<GlobalSpec["embedding"]>;

/** Options of {@link EmbeddingClient}. */
export interface EmbeddingClientOptions {
  /** The service of the active configuration; undefined without one. */
  readonly readService: () => EmbeddingService | undefined;
  readonly readNowMs: () => number;
  readonly onFault: (fault: string) => void;
}

/** Asks the service. */
export class EmbeddingClient {
  readonly #options: EmbeddingClientOptions;
  #calls = 0;
  #pausedUntilMs = 0;

  constructor(options: EmbeddingClientOptions) {
    this.#options = options;
  }

  /** The vector of a text, of length 1; undefined if the service cannot tell. Never rejects. */
  async embed(text: string): Promise<Float32Array | undefined> {
    const { readService, readNowMs, onFault } = this.#options;
    const service = readService();
    if (service === undefined || readNowMs() < this.#pausedUntilMs) return undefined;
    if (this.#calls >= CALLS_MAX) return undefined;
    this.#calls++;
    try {
      return normalize(await ask(service, text));
    } catch (error) {
      this.#pausedUntilMs = readNowMs() + PAUSE_MS;
      onFault(error instanceof Error ? error.message : String(error));
      return undefined;
    } finally {
      this.#calls--;
    }
  }
}

async function ask(
  { url, model, key_env: keyEnv }: EmbeddingService,
  text: string,
): Promise<number[]> {
  const key = keyEnv === undefined ? undefined : process.env[keyEnv]?.trim();
  const answer = await fetch(url, {
    method: "POST",
    redirect: "error",
    headers: {
      "content-type": "application/json",
      ...(key === undefined || key === "" ? {} : { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify({ model, input: text, encoding_format: "float" }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const body = await readBounded(answer);
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answerSchema.parse(JSON.parse(body)).data[0].embedding;
}

async function readBounded(answer: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of answer.body ?? []) {
    size += piece.length;
    if (size > ANSWER_BYTES_MAX) throw new Error(`more than ${ANSWER_BYTES_MAX} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function normalize(values: readonly number[]): Float32Array {
  const length = Math.hypot(...values);
  if (!Number.isFinite(length) || length === 0) throw new Error("a vector without a length");
  return Float32Array.from(values, (value) => value / length);
}
