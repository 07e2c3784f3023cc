// The answers that the gateway gives itself: problem documents (RFC 9457) with the request's trace.
import { nameOfMethod } from "@platform/http1";
import {
  PlatformError,
  getProblemHeaders,
  toProblem,
  type ErrorCode,
} from "@platform/kernel/errors";
import type { GateExchange } from "./request-state.ts";

/** Answers a request with an error; the code goes into its access log line. */
export function answerError(exchange: GateExchange, error: PlatformError): void {
  const state = exchange.userData;
  state.code = error.code;
  const context = { instance: readSentPath(exchange), traceId: state.ids.traceId };
  exchange.respond({
    status: error.status,
    headers: Object.entries(getProblemHeaders(error)),
    body: JSON.stringify(toProblem(error, context)),
  });
}

/** Answers with a code and a sentence for the caller. */
export function answerProblem(
  exchange: GateExchange,
  code: ErrorCode,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  answerError(exchange, new PlatformError(code, detail, { headers }));
}

/** The path of the request as it came, without its query. */
export function readSentPath(exchange: GateExchange): string {
  const { head } = exchange;
  return head.bytes.toString("latin1", head.pathStart, head.pathEnd) || "/";
}

/** The method's name. */
export function readMethod(exchange: GateExchange): string {
  const { head } = exchange;
  return (
    nameOfMethod(head.methodId) ?? head.bytes.toString("latin1", head.headStart, head.methodEnd)
  );
}
