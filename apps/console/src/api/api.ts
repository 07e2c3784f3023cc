// Calls of the services' APIs, with problems as typed failures.
import type { ConsoleProblem, ConsoleReason } from "@platform/console/contract";
import { t } from "../words/words.ts";

const REQUEST_TIMEOUT_MS = 30_000;

/** A problem of one field of a request. */
export interface FieldProblem {
  path: string;
  message: string;
  /** Place in a JSON body: `body:LINE:COLUMN`. */
  source?: string;
}

/** A refused or failed request. `status` 0: no answer. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly traceId: string;
  readonly reason: ConsoleReason | undefined;
  /** Seconds until a retry makes sense. */
  readonly retryAfterS: number | undefined;
  readonly fields: readonly FieldProblem[];
  /** Other members of the problem, such as both versions after a 412. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, problem: Partial<ConsoleProblem>, retryAfterS?: number) {
    super(problem.detail ?? problem.error ?? `HTTP ${status}`);
    this.status = status;
    this.code = problem.code ?? "";
    this.traceId = problem.trace_id ?? "";
    this.reason = problem.reason;
    this.retryAfterS = retryAfterS;
    this.fields = problem.errors ?? [];
    this.details = { ...problem };
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

/** True while requests must outlive the page. */
let isPageLeft = false;

/** Runs a function whose requests are completed even though the page is being closed. */
export function outlivePage(run: () => void): void {
  isPageLeft = true;
  try {
    run();
  } finally {
    isPageLeft = false;
  }
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
      keepalive: isPageLeft,
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
    throw new ApiFailure(0, { detail: describeSilence(error) });
  }
  if (response.ok) return response;
  const failure = await readFailure(response);
  if (failure.reason !== undefined) onSessionFailure(failure);
  throw failure;
}

/** Options of {@link sendBlob}. */
export interface BlobOptions {
  headers?: Readonly<Record<string, string>>;
  signal: AbortSignal;
  /** Called with the number of bytes that have left. */
  onProgress: (bytes: number) => void;
}

/** Sends bytes by PUT and reports the progress, which `fetch` does not. Rejects like {@link send}. */
export function sendBlob<Answer>(path: string, bytes: Blob, options: BlobOptions): Promise<Answer> {
  const { headers = {}, signal, onProgress } = options;
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const request = new XMLHttpRequest();
  const abort = (): void => request.abort();
  signal.addEventListener("abort", abort, { once: true });
  request.open("PUT", path);
  request.setRequestHeader("content-type", "application/octet-stream");
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  request.upload.addEventListener("progress", ({ loaded }) => onProgress(loaded));
  request.addEventListener("abort", () => reject(new DOMException("Aborted", "AbortError")));
  request.addEventListener("error", () =>
    reject(new ApiFailure(0, { detail: t("The connection to the console failed.") })),
  );
  request.addEventListener("loadend", () => signal.removeEventListener("abort", abort));
  request.addEventListener("load", () => {
    const { status, responseText } = request;
    if (status >= 200 && status < 300) {
      resolve((responseText === "" ? undefined : JSON.parse(responseText)) as Answer);
      return;
    }
    const failure = describeFailure(status, responseText, request.getResponseHeader("retry-after"));
    if (failure.reason !== undefined) onSessionFailure(failure);
    reject(failure);
  });
  if (signal.aborted) abort();
  else request.send(bytes);
  return promise;
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

// The browser's own words are "signal timed out" and "Failed to fetch".
function describeSilence(error: unknown): string {
  const isTimeout = error instanceof DOMException && error.name === "TimeoutError";
  if (!isTimeout) return t("The connection to the console failed.");
  return t("The service did not answer within {n} s.", { n: REQUEST_TIMEOUT_MS / 1000 });
}

async function readFailure(response: Response): Promise<ApiFailure> {
  const text = await response.text().catch(() => "");
  const retryAfter = response.headers.get("retry-after");
  return describeFailure(response.status, text || response.statusText, retryAfter);
}

function describeFailure(status: number, text: string, retryAfter: string | null): ApiFailure {
  let problem: Partial<ConsoleProblem> = {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null) problem = parsed;
  } catch {
    if (text !== "") problem = { detail: text.slice(0, 300) };
  }
  const seconds = Number(retryAfter ?? Number.NaN);
  return new ApiFailure(status, problem, Number.isFinite(seconds) ? seconds : undefined);
}
