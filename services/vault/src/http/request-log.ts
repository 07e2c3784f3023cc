// The span and the log line of each request to the object API.
import type { Logger } from "@platform/kernel/log";
import { parseTraceContext } from "@platform/kernel/trace";
import type { Span, Tracer } from "@platform/kernel/trace";
import type { FinishedRequest } from "./object-server.ts";
import type { S3Request } from "./request.ts";

/** A text of a request as far as its line holds it. */
const TEXT_CHARACTERS_MAX = 1_024;

/** Begins the span of a request: in its client's trace, or in a new one. */
export function startRequestSpan(tracer: Tracer, { fields, method, secure }: S3Request): Span {
  const traceparent = fields.get("traceparent");
  return tracer.startSpan({
    name: method,
    kind: "server",
    parent:
      traceparent === undefined
        ? undefined
        : parseTraceContext(traceparent, fields.get("tracestate")),
    attributes: { "http.request.method": method, "url.scheme": secure ? "https" : "http" },
  });
}

/** Ends the span of a request and writes its line; `log` is asked once, not for each request. */
export function createRequestRecorder(log: Logger) {
  const output = log.isOn("info") ? new LineGroups() : undefined;
  return (finished: FinishedRequest, durationMs: number): void => {
    const { span, request, operation, status, errorCode } = finished;
    span.setName(`${request.method} ${operation}`);
    span.setAttribute("http.route", operation);
    span.setAttribute("http.response.status_code", status);
    span.setAttribute("url.path", request.rawPath);
    if (isFailure(status)) span.setStatus("error", errorCode ?? "");
    span.end();
    const isProbe = operation === "Probe";
    if (isProbe ? !log.isOn("debug") : output === undefined) return;
    output?.join();
    const { traceId, spanId } = span.context;
    log[isProbe ? "debug" : "info"]("request", {
      trace_id: traceId,
      span_id: spanId,
      duration_ms: durationMs,
      status,
      method: request.method,
      // Without the query, where a presigned URL has its signature.
      path: request.rawPath.slice(0, TEXT_CHARACTERS_MAX),
      route: operation,
      request_id: request.id,
      client: request.clientAddress,
      error_code: errorCode,
    });
  };
}

/** Whether an answer says that the service failed, rather than that it does not do what was asked for. */
export function isFailure(status: number): boolean {
  return status >= 500 && status !== 501;
}

/** Time in which lines are gathered. */
const GATHER_MS = 20;

// Lines that come close together go out in one write: a system call for each costs more than the line.
class LineGroups {
  #isOpen = false;
  readonly #end = (): void => {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    process.stdout.uncork();
  };

  constructor() {
    process.once("exit", this.#end);
  }

  join(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    process.stdout.cork();
    setTimeout(this.#end, GATHER_MS);
  }
}
