// Calls of the services' APIs, with problems as typed failures.
import type { ConsoleProblem, ConsoleReason } from "@platform/console/contract";
import type { DescribedFault } from "../words/fault.ts";
import { t } from "../words/words.ts";

/** A service that is silent for this time does not answer. */
const SILENCE_MS = 30_000;

/** A problem of one field of a request. */
export interface FieldProblem extends DescribedFault {
  path: string;
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

/** Calls `listener` for each refusal: some end the session, require a new sign-in or follow from other permissions. */
export function listenForSessionFailures(listener: FailureListener): void {
  onSessionFailure = listener;
}

/** Sends a request; rejects with an {@link ApiFailure} unless the status is 2xx. The time of its body is not limited. */
export async function send(path: string, options?: CallOptions): Promise<Response> {
  return await exchange(path, options, async (response) => response);
}

/** Sends a request and parses its JSON; an empty body is `undefined`. */
export async function call<Answer>(path: string, options?: CallOptions): Promise<Answer> {
  const text = await exchange(path, options, (response) => response.text());
  return (text === "" ? undefined : JSON.parse(text)) as Answer;
}

// A caller that gives up has a signal of its own, which must not replace the limit.
async function exchange<Read>(
  path: string,
  { method = "GET", json, bytes, headers = {}, signal }: CallOptions = {},
  read: (response: Response) => Promise<Read>,
): Promise<Read> {
  const silence = new Silence();
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      credentials: "same-origin",
      redirect: "error",
      keepalive: isPageLeft,
      signal: signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal]),
      headers: {
        // Figures of requests are those of users.
        "x-platform-own": "1",
        ...(json === undefined ? {} : { "content-type": "application/json" }),
        ...(bytes === undefined ? {} : { "content-type": "application/octet-stream" }),
        ...headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      ...(bytes === undefined ? {} : { body: bytes }),
    });
    if (response.ok) return await read(response);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw silence.signal.aborted ? describeSilence() : describeLoss();
  } finally {
    silence.end();
  }
  const failure = await readFailure(response);
  onSessionFailure(failure);
  throw failure;
}

/** Aborts its signal when nothing was heard for {@link SILENCE_MS}. */
class Silence {
  readonly #stop = new AbortController();
  #timer = 0;

  constructor() {
    this.restart();
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  restart(): void {
    this.end();
    this.#timer = setTimeout(() => {
      this.#stop.abort(new DOMException("No answer", "TimeoutError"));
    }, SILENCE_MS);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

/** Options of {@link sendBlob}. */
export interface BlobOptions {
  headers?: Readonly<Record<string, string>>;
  signal: AbortSignal;
  /** Called with the number of bytes that have left. */
  onProgress: (bytes: number) => void;
}

/**
 * Sends bytes by PUT and reports the progress, which `fetch` does not. Rejects like {@link send}; the limit begins again
 * with each progress.
 */
export function sendBlob<Answer>(path: string, bytes: Blob, options: BlobOptions): Promise<Answer> {
  const { headers = {}, signal, onProgress } = options;
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const request = new XMLHttpRequest();
  const silence = new Silence();
  const stop = AbortSignal.any([signal, silence.signal]);
  const abort = (): void => request.abort();
  stop.addEventListener("abort", abort, { once: true });
  request.open("PUT", path);
  request.setRequestHeader("content-type", "application/octet-stream");
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  request.upload.addEventListener("progress", ({ loaded }) => {
    silence.restart();
    onProgress(loaded);
  });
  request.addEventListener("abort", () =>
    reject(signal.aborted ? new DOMException("Aborted", "AbortError") : describeSilence()),
  );
  request.addEventListener("error", () => reject(describeLoss()));
  request.addEventListener("loadend", () => {
    silence.end();
    stop.removeEventListener("abort", abort);
  });
  request.addEventListener("load", () => {
    const { status, responseText } = request;
    if (status >= 200 && status < 300) {
      resolve((responseText === "" ? undefined : JSON.parse(responseText)) as Answer);
      return;
    }
    const failure = describeFailure(status, responseText, request.getResponseHeader("retry-after"));
    onSessionFailure(failure);
    reject(failure);
  });
  if (signal.aborted) abort();
  else request.send(bytes);
  return promise;
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
function describeSilence(): ApiFailure {
  const detail = t("The service did not answer within {n} s.", { n: SILENCE_MS / 1000 });
  return new ApiFailure(0, { detail });
}

function describeLoss(): ApiFailure {
  return new ApiFailure(0, { detail: t("The connection to the console failed.") });
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
