// Responses that the gateway produces itself: problem documents (RFC 9457) with the request's trace ID.
import { nameOfMethod, type Answer } from "@platform/http1";
import {
  PlatformError,
  getProblemHeaders,
  toProblem,
  type ErrorCode,
} from "@platform/kernel/errors";
import type { GateExchange } from "./exchange.ts";

/** Answers a request with an error; its access log line carries the code. */
export function answerError(exchange: GateExchange, error: PlatformError): void {
  const state = exchange.userData;
  state.code = error.code;
  // The log may say more than the response.
  state.detail = typeof error.cause === "string" ? error.cause : error.detail;
  state.sentMethod = readMethod(exchange);
  state.sentPath = readSentPath(exchange);
  const context = { instance: state.sentPath, traceId: state.ids.traceId };
  send(exchange, {
    status: error.status,
    headers: [...Object.entries(getProblemHeaders(error)), ...state.responseFields.list()],
    body: JSON.stringify(toProblem(error, context)),
  });
}

/** Answers a request with an error built from a code and a detail. */
export function answerProblem(
  exchange: GateExchange,
  code: ErrorCode,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  answerError(exchange, new PlatformError(code, detail, { headers }));
}

/** Sends a response of a step, with the fields that steps have added. */
export function answerWith(exchange: GateExchange, answer: Answer): void {
  const { responseFields } = exchange.userData;
  if (responseFields.isEmpty) send(exchange, answer);
  else {
    const headers = [...(answer.headers ?? []), ...responseFields.list()];
    send(exchange, { ...answer, headers });
  }
}

function send(exchange: GateExchange, answer: Answer): void {
  const { guests } = exchange.userData;
  if (guests === null || !guests.answer(answer)) exchange.respond(answer);
}

/** The path as the client sent it, without the query. */
function readSentPath(exchange: GateExchange): string {
  const { head } = exchange;
  return head.bytes.toString("latin1", head.pathStart, head.pathEnd) || "/";
}

/** The method as the client sent it. */
export function readMethod(exchange: GateExchange): string {
  const { head } = exchange;
  return (
    nameOfMethod(head.methodId) ?? head.bytes.toString("latin1", head.headStart, head.methodEnd)
  );
}
