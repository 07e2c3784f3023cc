// Calls the JSON APIs of the services, and turns their problem documents into errors for the operator.
import { nameProgram } from "@platform/kernel/config";

const TIMEOUT_MS = 15_000;

/** Methods that the commands use. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** An API refused a request. */
export class ApiError extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** Headers of one request, such as its credentials. */
type Authorize = (method: Method, url: URL, body: string | Uint8Array) => Record<string, string>;

/** Options of {@link ApiClient}. */
export interface ApiClientOptions {
  /** Product name of the service, for messages. */
  label: string;
  url: string;
  authorize: Authorize;
  /** Time to wait for an answer; default 15 s. */
  timeoutMs?: number;
}

/** Client of one service. */
export class ApiClient {
  readonly #options: ApiClientOptions;

  constructor(options: ApiClientOptions) {
    this.#options = options;
  }

  /** Sends a request with a JSON body; resolves to the parsed response. Throws `ApiError`. */
  call(method: Method, path: string, body?: unknown): Promise<Record<string, unknown>> {
    if (body === undefined) return this.send(method, path);
    return this.send(method, path, { type: "application/json", bytes: JSON.stringify(body) });
  }

  /** Sends a request with a body of any type; resolves to the parsed response. Throws `ApiError`. */
  async send(
    method: Method,
    path: string,
    body?: { type: string; bytes: string | Uint8Array<ArrayBuffer> },
  ): Promise<Record<string, unknown>> {
    const { label, url: base, authorize, timeoutMs } = this.#options;
    const url = new URL(path, base);
    const headers = {
      ...(body === undefined ? {} : { "content-type": body.type }),
      ...authorize(method, url, body?.bytes ?? ""),
    };
    const init = { method, headers, ...(body === undefined ? {} : { body: body.bytes }) };
    const answer = await send(label, url, init, timeoutMs);
    const received = await answer.text();
    if (!answer.ok) throw new ApiError(explain(label, answer.status, received), answer.status);
    return received === "" ? {} : (JSON.parse(received) as Record<string, unknown>);
  }
}

/** Sends a request. Throws an error for the operator if the service does not respond. */
export async function send(
  label: string,
  url: URL,
  init: RequestInit,
  timeoutMs = TIMEOUT_MS,
): Promise<Response> {
  try {
    return await fetch(url, { ...init, signal: AbortSignal.timeout(timeoutMs) });
  } catch (error) {
    const isLate = error instanceof Error && error.name === "TimeoutError";
    const reason = isLate ? `did not respond within ${timeoutMs / 1000} s` : "cannot be reached";
    throw new Error(
      `${label} ${reason} at ${url.origin}; see "${nameProgram("platform")} status"`,
      {
        cause: error,
      },
    );
  }
}

/** The reason that a problem document or an OAuth error gives. */
export function explain(label: string, status: number, text: string): string {
  try {
    const { detail, error_description, errors } = JSON.parse(text) as {
      detail?: string;
      error_description?: string;
      errors?: { path?: string; message?: string }[];
    };
    const fields = (errors ?? []).map(({ path, message }) => `${path}: ${message}`).join("; ");
    const reason = fields === "" ? (detail ?? error_description) : fields;
    if (reason !== undefined) return `${label}: ${reason}`;
  } catch {
    // Not JSON: the status says it.
  }
  return `${label} responded with status ${status}`;
}
