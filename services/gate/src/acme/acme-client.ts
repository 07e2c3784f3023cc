// Requests to an ACME directory (RFC 8555): its resources, nonces, and signed posts of one account.
import type { KeyObject } from "node:crypto";
import { createEgress, type EgressFetch } from "@platform/kernel/egress";
import { z } from "zod";
import { AcmeError, readRetryAfter } from "./acme-error.ts";
import { bindAccount, describeKey, hashKey, signJws } from "./jws.ts";

/** Networks of all addresses: the directory is one of the operator. */
const ANY_NETWORK = ["0.0.0.0/0", "::/0"];
const TIMEOUT_MS = 30_000;
const ANSWER_BYTES_MAX = 256 * 1024;
const NONCES_MAX = 16;
const NONCE_TRIES = 10;
const DIRECTORY_MS = 3_600_000;
const ERROR_PREFIX = "urn:ietf:params:acme:error:";
const DETAIL_CHARACTERS_MAX = 500;

const url = z.url({ protocol: /^https?$/ }).max(2_048);

const directorySchema = z.object({
  newNonce: url,
  newAccount: url,
  newOrder: url,
  revokeCert: url,
  renewalInfo: url.optional(),
  meta: z
    .object({
      externalAccountRequired: z.boolean().optional(),
      profiles: z.record(z.string(), z.unknown()).optional(),
    })
    .optional(),
});

const problemSchema = z.object({
  type: z.string().default(""),
  detail: z.string().default(""),
  subproblems: z.array(z.object({ detail: z.string().default("") })).optional(),
});

/** Resources of a directory. */
export type Directory = z.output<typeof directorySchema>;

/** Options of {@link AcmeClient}. */
export interface AcmeClientOptions {
  directoryUrl: string;
  /** Trusted authorities in PEM, instead of those of the system. */
  ca: string | undefined;
  accountKey: KeyObject;
  /** `User-Agent` of the requests, which RFC 8555 requires. */
  userAgent: string;
  readNowMs: () => number;
  signal: AbortSignal;
}

/** A successful answer. */
export interface AcmeAnswer {
  status: number;
  headers: Headers;
  text: string;
}

/** The requests of one account. All methods throw {@link AcmeError}. */
export class AcmeClient {
  /** URL of the account; undefined before it is registered. */
  accountUrl: string | undefined;
  readonly #options: AcmeClientOptions;
  readonly #fetch: EgressFetch;
  #nonces: string[] = [];
  #directory: { value: Directory; readAtMs: number } | undefined;

  constructor(options: AcmeClientOptions) {
    this.#options = options;
    this.#fetch = createEgress({
      allowedNetworks: ANY_NETWORK,
      timeoutMs: TIMEOUT_MS,
      answerBytesMax: ANSWER_BYTES_MAX,
      ...(options.ca === undefined ? {} : { ca: [options.ca] }),
    });
  }

  /** The key authorization of a challenge's token. */
  authorize(token: string): string {
    return `${token}.${hashKey(describeKey(this.#options.accountKey))}`;
  }

  /** Returns the resources of the directory, read at most an hour ago. */
  async readDirectory(): Promise<Directory> {
    const { directoryUrl, readNowMs } = this.#options;
    const known = this.#directory;
    if (known !== undefined && readNowMs() - known.readAtMs < DIRECTORY_MS) return known.value;
    const value = parse(directorySchema, await this.get(directoryUrl), "the directory");
    this.#directory = { value, readAtMs: readNowMs() };
    return value;
  }

  /** True if the directory, as it was last read, gives times of renewal (RFC 9773). */
  get hasRenewalInfo(): boolean {
    return this.#directory?.value.renewalInfo !== undefined;
  }

  /** Registers the account, or finds the one of the same key. Returns its URL. */
  async register(account: {
    email: string | undefined;
    binding: { kid: string; hmacKey: string } | undefined;
  }): Promise<string> {
    const { newAccount, meta } = await this.readDirectory();
    const { email, binding } = account;
    if (meta?.externalAccountRequired === true && binding === undefined) {
      throw new AcmeError(
        "externalAccountRequired",
        "the directory requires an external account: set acme_eab_kid and acme_eab_hmac_key",
      );
    }
    const jwk = describeKey(this.#options.accountKey);
    const answer = await this.#post(
      newAccount,
      {
        termsOfServiceAgreed: true,
        ...(email === undefined ? {} : { contact: [`mailto:${email}`] }),
        ...(binding === undefined
          ? {}
          : {
              externalAccountBinding: bindAccount(jwk, binding.kid, binding.hmacKey, newAccount),
            }),
      },
      { jwk },
    );
    this.accountUrl = requireLocation(answer, "the account");
    return this.accountUrl;
  }

  /** Posts a signed payload; undefined reads a resource. An account that the CA has forgotten is to be registered again. */
  async post(to: string, payload?: object, accept?: string): Promise<AcmeAnswer> {
    if (this.accountUrl === undefined) throw new AcmeError("", "there is no account");
    try {
      return await this.#post(to, payload, { kid: this.accountUrl }, accept);
    } catch (error) {
      const isGone = error instanceof AcmeError && error.type === "accountDoesNotExist";
      if (isGone) this.accountUrl = undefined;
      throw error;
    }
  }

  /** Reads a resource without a signature. */
  async get(from: string): Promise<AcmeAnswer> {
    return this.#check(await this.#send(from, { method: "GET" }));
  }

  async #post(
    to: string,
    payload: object | undefined,
    by: { jwk: object } | { kid: string },
    accept = "application/json",
  ): Promise<AcmeAnswer> {
    const { accountKey } = this.#options;
    for (let tries = 1; ; tries++) {
      const nonce = await this.#takeNonce();
      const body = JSON.stringify(signJws(accountKey, { nonce, url: to, ...by }, payload));
      const headers = { "Content-Type": "application/jose+json", Accept: accept };
      try {
        return await this.#check(await this.#send(to, { method: "POST", headers, body }));
      } catch (error) {
        const isNonce = error instanceof AcmeError && error.type === "badNonce";
        if (!isNonce || tries >= NONCE_TRIES) throw error;
      }
    }
  }

  async #takeNonce(): Promise<string> {
    const known = this.#nonces.pop();
    if (known !== undefined) return known;
    const { newNonce } = await this.readDirectory();
    await this.#check(await this.#send(newNonce, { method: "HEAD" }));
    const fresh = this.#nonces.pop();
    if (fresh === undefined) throw new AcmeError("", "the directory sends no nonces");
    return fresh;
  }

  async #send(
    to: string,
    request: { method: string; headers?: Record<string, string>; body?: string },
  ): Promise<Response> {
    const { userAgent, signal } = this.#options;
    let answer: Response;
    try {
      const headers = { "User-Agent": userAgent, ...request.headers };
      answer = await this.#fetch(to, { ...request, headers, signal });
    } catch (cause) {
      throw new AcmeError("", explain(cause), undefined, cause);
    }
    const nonce = answer.headers.get("replay-nonce");
    if (nonce !== null && /^[A-Za-z0-9_-]{1,1024}$/.test(nonce)) {
      this.#nonces = [...this.#nonces, nonce].slice(-NONCES_MAX);
    }
    return answer;
  }

  async #check(answer: Response): Promise<AcmeAnswer> {
    const { status, headers } = answer;
    const text = await answer.text();
    if (answer.ok) return { status, headers, text };
    const retryAfterMs = readRetryAfter(headers, this.#options.readNowMs());
    const problem = problemSchema.safeParse(tryParse(text));
    if (!problem.success || problem.data.type === "") {
      throw new AcmeError("", `the directory answered with status ${status}`, retryAfterMs);
    }
    const { type, detail, subproblems = [] } = problem.data;
    const details = [detail, ...subproblems.map((one) => one.detail)].filter((one) => one !== "");
    const short = type.startsWith(ERROR_PREFIX) ? type.slice(ERROR_PREFIX.length) : type;
    const shown = details.join("; ").slice(0, DETAIL_CHARACTERS_MAX);
    throw new AcmeError(short, `${short}: ${shown}`, retryAfterMs);
  }
}

/** Parses the JSON of an answer. Throws {@link AcmeError}; `subject` names it there. */
export function parse<T>(schema: z.ZodType<T>, { text }: AcmeAnswer, subject: string): T {
  const result = schema.safeParse(tryParse(text));
  if (result.success) return result.data;
  throw new AcmeError("", `${subject} is not as RFC 8555 describes it`);
}

/** Returns the URL of a created resource. */
export function requireLocation({ headers }: AcmeAnswer, subject: string): string {
  const location = url.safeParse(headers.get("location"));
  if (location.success) return location.data;
  throw new AcmeError("", `${subject} has no URL`);
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

// The cause says why a connection failed, for example that the certificate of the directory is not trusted.
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message !== ""
    ? `${error.message}: ${cause.message}`
    : error.message;
}
