// The span and the log line of each request to the object API.
import { redactText, type Logger } from "@platform/kernel/log";
import { parseTraceContext, type Span, type Tracer } from "@platform/kernel/trace";
import type { LogOutput } from "../log/log-output.ts";
import type { FinishedRequest } from "./finished-request.ts";
import type { S3Request } from "./request.ts";

/** Limit of texts from the request in a log line. */
const TEXT_CHARACTERS_MAX = 1_024;

/** Starts the span of a request, in the trace of its client or in a new one. */
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

/** Ends the span of a request and writes its log line; `endedAt` is ISO 8601 in UTC. */
export type RequestRecorder = (
  finished: FinishedRequest,
  durationMs: number,
  endedAt: string,
) => void;

/** Creates the recorder of requests. It reads the log level once, not for each request. */
export function createRequestRecorder(log: Logger, output: LogOutput): RequestRecorder {
  const isOn = log.isOn("info");
  const isProbeOn = log.isOn("debug");
  const write = output.format === "json" ? createLineWriter(output) : createPrettyWriter(log);
  return (finished, durationMs, endedAt) => {
    const { span, request, operation, status, errorCode } = finished;
    span.setName(`${request.method} ${operation}`);
    span.setAttribute("http.route", operation);
    span.setAttribute("http.response.status_code", status);
    span.setAttribute("url.path", request.rawPath);
    if (isFailure(status)) span.setStatus("error", errorCode ?? "");
    span.end();
    if (operation === "Probe" ? !isProbeOn : !isOn) return;
    output.gather();
    write(finished, durationMs, endedAt);
  };
}

const getLevel = ({ operation }: FinishedRequest) => (operation === "Probe" ? "debug" : "info");
// Without the query, where a presigned URL has its signature.
const getPath = ({ request }: FinishedRequest) => request.rawPath.slice(0, TEXT_CHARACTERS_MAX);

function createPrettyWriter(log: Logger): RequestRecorder {
  return (finished, durationMs) => {
    const { span, request, operation, status, errorCode } = finished;
    const { traceId, spanId } = span.context;
    log[getLevel(finished)]("request", {
      trace_id: traceId,
      span_id: spanId,
      duration_ms: durationMs,
      status,
      method: request.method,
      path: getPath(finished),
      route: operation,
      request_id: request.id,
      client: request.clientAddress,
      error_code: errorCode,
    });
  };
}

/** Texts that need no escape and have neither white space nor an `@`, so they cannot contain credentials. */
const PLAIN = /^[!#-?A-[\]-~]*$/;

// Builds the line that the logger would write. It runs for each request, and the general logger costs several times as
// much. Apart from the path, none of these texts can need an escape.
function createLineWriter(output: LogOutput): RequestRecorder {
  return (finished, durationMs, endedAt) => {
    const { span, request, operation, status, errorCode } = finished;
    const { traceId, spanId } = span.context;
    const path = getPath(finished);
    const quoted = PLAIN.test(path) ? `"${path}"` : JSON.stringify(redactText(path));
    const error = errorCode === undefined ? "" : `,"error_code":"${errorCode}"`;
    output.write(
      `{"level":"${getLevel(finished)}","msg":"request","trace_id":"${traceId}","span_id":"${spanId}",` +
        `"service":"vault","duration_ms":${formatMs(durationMs)},"status":${status},"timestamp":"${endedAt}",` +
        `"method":"${request.method}","path":${quoted},"route":"${operation}",` +
        `"request_id":"${request.id}","client":"${request.clientAddress}"${error}}\n`,
    );
  };
}

// Whole microseconds: fractions are slow to format.
function formatMs(ms: number): string {
  const us = Math.round(ms * 1000);
  const fraction = us % 1000;
  const zeros = fraction < 10 ? "00" : fraction < 100 ? "0" : "";
  return `${Math.floor(us / 1000)}.${zeros}${fraction}`;
}

/** True if the answer is a failure of the service, rather than an unsupported request. */
export function isFailure(status: number): boolean {
  return status >= 500 && status !== 501;
}
