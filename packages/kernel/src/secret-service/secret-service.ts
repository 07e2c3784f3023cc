// Requests to a secret service. Errors name paths and statuses, never values.
import { z } from "zod";
import { createEgress, EgressError, type EgressFetch } from "../egress/index.ts";

/** Reasons why a request failed. */
export type SecretServiceErrorCode =
  /** The token is invalid, has expired, or lacks the right. */
  | "forbidden"
  /** No answer, or a temporary failure: the service is sealed, overloaded or a standby. */
  | "unavailable"
  /** The answer is not one of the API. */
  | "malformed";

/** A request that failed. */
export class SecretServiceError extends Error {
  readonly code: SecretServiceErrorCode;

  constructor(code: SecretServiceErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SecretServiceError";
    this.code = code;
  }
}

/** Options of {@link SecretService}. */
export interface SecretServiceOptions {
  /** Origin, with an optional path before `/v1`. */
  url: string;
  /** Token of the requests; read for each of them. */
  token: () => string;
  /** Namespace of OpenBao and Vault Enterprise; undefined: the root namespace. */
  namespace?: string | undefined;
  /** Trusted certificate authorities in PEM, instead of those of the system. */
  ca?: string | undefined;
  /** Timeout of a request. Default 5 000. */
  timeoutMs?: number;
}

/** A version of a secret. Values that are no text are left out. */
export interface StoredSecret {
  version: number;
  data: Readonly<Record<string, string>>;
}

/** The service is one of the operator, at any address. */
const ANY_NETWORK = ["0.0.0.0/0", "::/0"];
const ANSWER_BYTES_MAX = 2 * 1_048_576;
const NAMES_MAX = 10_000;

const secretSchema = z.object({
  data: z.object({
    data: z.record(z.string(), z.unknown()).nullable(),
    metadata: z.object({ version: z.int() }),
  }),
});
const listSchema = z.object({ data: z.object({ keys: z.array(z.string()) }) });
const tokenSchema = z.object({ data: z.object({ renewable: z.boolean(), ttl: z.number() }) });

/** Reads secrets of one service. All methods reject with a {@link SecretServiceError}. */
export class SecretService {
  readonly #options: SecretServiceOptions;
  readonly #fetch: EgressFetch;

  constructor(options: SecretServiceOptions) {
    this.#options = options;
    this.#fetch = createEgress({
      allowedNetworks: ANY_NETWORK,
      timeoutMs: options.timeoutMs ?? 5_000,
      answerBytesMax: ANSWER_BYTES_MAX,
      ...(options.ca === undefined ? {} : { ca: [options.ca] }),
    });
  }

  /** Returns the current version of a secret, or another one; undefined if it does not exist or is deleted. */
  async read(mount: string, path: string, version?: number): Promise<StoredSecret | undefined> {
    const query = version === undefined ? "" : `?version=${version}`;
    const answer = await this.#send("GET", `${mount}/data/${path}${query}`);
    if (answer === undefined) return undefined;
    const { data: values, metadata } = check(secretSchema, answer, path).data;
    if (values === null) return undefined;
    const texts = Object.entries(values).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value] as const] : [],
    );
    return { version: metadata.version, data: Object.fromEntries(texts) };
  }

  /** Returns the names below a path; those of folders end in `/`. Empty if there are none. */
  async list(mount: string, path: string): Promise<string[]> {
    const answer = await this.#send("GET", `${mount}/metadata/${path}?list=true`);
    if (answer === undefined) return [];
    return check(listSchema, answer, path).data.keys.slice(0, NAMES_MAX);
  }

  /** Returns the remaining life of the token in seconds, 0 if it has no end, and whether it can be renewed. */
  async readToken(): Promise<{ isRenewable: boolean; ttlSeconds: number }> {
    const answer = await this.#send("GET", "auth/token/lookup-self");
    const { renewable, ttl } = check(tokenSchema, answer, "auth/token/lookup-self").data;
    return { isRenewable: renewable, ttlSeconds: ttl };
  }

  /** Extends the life of the token by its period. */
  async renewToken(): Promise<void> {
    await this.#send("POST", "auth/token/renew-self");
  }

  async #send(method: string, path: string): Promise<unknown> {
    const { url, token, namespace } = this.#options;
    const place = path.split("?")[0]!;
    const target = `${url.replace(/\/$/, "")}/v1/${encodePath(path)}`;
    let answer: Response;
    let text: string;
    try {
      answer = await this.#fetch(target, {
        method,
        headers: {
          "X-Vault-Token": token(),
          "X-Vault-Request": "true",
          ...(namespace === undefined ? {} : { "X-Vault-Namespace": namespace }),
        },
      });
      text = await answer.text();
    } catch (cause) {
      const reason = cause instanceof EgressError ? cause.message : "no response";
      throw new SecretServiceError("unavailable", reason, { cause });
    }
    const { status } = answer;
    if (status === 404) return undefined;
    if (status === 401 || status === 403) {
      throw new SecretServiceError("forbidden", `${place}: the token is refused (${status})`);
    }
    if (!answer.ok) {
      const code = status >= 500 || status === 429 || status === 472 || status === 473;
      throw new SecretServiceError(
        code ? "unavailable" : "malformed",
        `${place}: the service answers with status ${status}`,
      );
    }
    const value = tryParse(text);
    if (value === undefined) {
      throw new SecretServiceError("malformed", `${place}: the answer is not JSON`);
    }
    return value;
  }
}

function check<T>(schema: z.ZodType<T>, value: unknown, path: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new SecretServiceError("malformed", `${path}: the answer is not that of a KV v2 engine`);
}

// The error of the parser would quote the text.
function tryParse(text: string): unknown {
  try {
    return text === "" ? {} : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function encodePath(path: string): string {
  const [place = "", query] = path.split("?");
  const encoded = place.split("/").map(encodeURIComponent).join("/");
  return query === undefined ? encoded : `${encoded}?${query}`;
}
