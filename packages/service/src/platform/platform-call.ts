// Requests to services of the platform, with a token of this service.
import { getClientToken } from "./client-token.ts";

const TIMEOUT_MS = 30_000;
const DETAIL_CHARACTERS_MAX = 500;

/** A service of the platform refused a request, or did not answer. */
export class PlatformServiceError extends Error {
  /** HTTP status; 0 if there was no answer. */
  readonly status: number;
  /** Stable code of the problem document, such as `forbidden`; "" if there is none. */
  readonly code: string;

  constructor(message: string, status: number, code: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "PlatformServiceError";
    this.status = status;
    this.code = code;
  }
}

/** A request of {@link callPlatform}. */
export interface PlatformCall {
  /** Name of the part in errors, such as `messages`. */
  readonly part: string;
  /** Base URL of the service. */
  readonly base: string;
  /** Path below the base, which may have a path of its own. */
  readonly path: string;
  /** Scope of the token; undefined for the scopes of the client. */
  readonly scope?: string | undefined;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Default: 30 s for the whole answer. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sends a request; resolves to an answer of the 200 class. A token that is refused is replaced once: it may have been
 * revoked. Throws a PlatformServiceError.
 */
export async function callPlatform(call: PlatformCall): Promise<Response> {
  const first = await send(call);
  const answer = first.status === 401 ? await replaceToken(call, first) : first;
  if (answer.ok) return answer;
  throw await readError(call.part, answer);
}

async function replaceToken(call: PlatformCall, refused: Response): Promise<Response> {
  await refused.body?.cancel();
  await getClientToken(call.scope, { isRefused: true });
  return send(call);
}

async function send(call: PlatformCall): Promise<Response> {
  const { part, base, path, scope, method = "GET", headers, body } = call;
  const token = await getClientToken(scope);
  const url = `${base.replace(/\/$/, "")}${path}`;
  try {
    return await fetch(url, {
      method,
      headers: {
        ...headers,
        Authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: call.signal ?? AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch (error) {
    if (call.signal?.aborted === true) throw error;
    const { origin } = new URL(url);
    throw new PlatformServiceError(`${part}: no answer from ${origin}`, 0, "", { cause: error });
  }
}

async function readError(part: string, answer: Response): Promise<PlatformServiceError> {
  const { status } = answer;
  const text = await answer.text();
  let code = "";
  let detail = `status ${status}`;
  try {
    const problem = JSON.parse(text) as { code?: unknown; detail?: unknown };
    if (typeof problem.code === "string") code = problem.code;
    if (typeof problem.detail === "string") detail = problem.detail.slice(0, DETAIL_CHARACTERS_MAX);
  } catch {
    // Not a problem document: the status is the reason.
  }
  return new PlatformServiceError(`${part}: ${detail}`, status, code);
}
