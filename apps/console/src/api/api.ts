// Calls of the services' APIs, with problems as typed failures.
import type { ConsoleProblem, ConsoleReason } from "@platform/console/contract";

const REQUEST_TIMEOUT_MS = 30_000;

/** A refused or failed request. `status` 0: no answer. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly traceId: string;
  readonly reason: ConsoleReason | undefined;
  /** Seconds until a retry makes sense. */
  readonly retryAfterS: number | undefined;
  readonly fields: readonly { path: string; message: string }[];

  constructor(status: number, problem: Partial<ConsoleProblem>, retryAfterS?: number) {
    super(problem.detail ?? problem.error ?? `HTTP ${status}`);
    this.status = status;
    this.code = problem.code ?? "";
    this.traceId = problem.trace_id ?? "";
    this.reason = problem.reason;
    this.retryAfterS = retryAfterS;
    this.fields = problem.errors ?? [];
  }
}

/** Body and options of a request. */
export interface CallOptions {
  method?: string;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as octets. */
  bytes?: BodyInit;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}

type FailureListener = (failure: ApiFailure) => void;
let onSessionFailure: FailureListener = () => undefined;

/** Calls `listener` for failures that end the session or require a new sign-in. */
export function listenForSessionFailures(listener: FailureListener): void {
  onSessionFailure = listener;
}

/** Sends a request; rejects with an {@link ApiFailure} unless the status is 2xx. */
export async function send(path: string, options: CallOptions = {}): Promise<Response> {
  const { method = "GET", json, bytes, headers = {}, signal } = options;
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      credentials: "same-origin",
      redirect: "error",
      signal: signal ?? AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      headers: {
        ...(json === undefined ? {} : { "content-type": "application/json" }),
        ...(bytes === undefined ? {} : { "content-type": "application/octet-stream" }),
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      ...(bytes === undefined ? {} : { body: bytes }),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiFailure(0, { detail: error instanceof Error ? error.message : String(error) });
  }
  if (response.ok) return response;
  const failure = await readFailure(response);
  if (failure.reason !== undefined) onSessionFailure(failure);
  throw failure;
}

/** Sends a request and parses its JSON; an empty body is `undefined`. */
export async function call<Answer>(path: string, options?: CallOptions): Promise<Answer> {
  const response = await send(path, options);
  const text = await response.text();
  return (text === "" ? undefined : JSON.parse(text)) as Answer;
}

/** Path with query parameters; undefined and empty ones are left out. */
export function withQuery(
  path: string,
  query: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** Encodes a value as one segment of a path. */
export function segment(value: string): string {
  // "." and ".." would be resolved by the browser.
  return encodeURIComponent(value).replace(/^\.{1,2}$/, (dots) => dots.replaceAll(".", "%2E"));
}

async function readFailure(response: Response): Promise<ApiFailure> {
  const text = await response.text().catch(() => "");
  let problem: Partial<ConsoleProblem> = {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null) problem = parsed;
  } catch {
    problem = { detail: text.slice(0, 300) || response.statusText };
  }
  const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new ApiFailure(
    response.status,
    problem,
    Number.isFinite(retryAfter) ? retryAfter : undefined,
  );
}
