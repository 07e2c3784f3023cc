// Responses that the gateway produces itself: problem documents (RFC 9457) with the request's trace ID, or, on AI routes, errors
// as the clients of model providers read them.
import { nameOfMethod, type Answer } from "@platform/http1";
import {
  PlatformError,
  getProblemHeaders,
  toProblem,
  type ErrorCode,
} from "@platform/kernel/errors";
import { type AiErrorForm, chooseErrorForm, describeAiError } from "./ai-error.ts";
import type { GateExchange } from "./exchange.ts";

/** Cost of an AI request in USD, on all responses of AI routes. */
export const TOKEN_COST_FIELD = "X-Token-Cost";
/** Probability that a request is a prompt injection, on all responses of routes with a guard. */
export const RISK_FIELD = "X-Prompt-Risk";
/** The risk of a request that was not judged. */
export const NO_RISK = "0.00";

/** Answers a request with an error; its access log line carries the code. */
export function answerError(exchange: GateExchange, error: PlatformError): void {
  const state = exchange.userData;
  state.code = error.code;
  // The log may say more than the response.
  state.detail = typeof error.cause === "string" ? error.cause : error.detail;
  state.sentMethod = readMethod(exchange);
  state.sentPath = readSentPath(exchange);
  const context = { instance: state.sentPath, traceId: state.ids.traceId };
  const form = findErrorForm(exchange);
  const headers = getProblemHeaders(error);
  const more = state.responseFields.list();
  if (form === undefined) {
    const body = JSON.stringify(toProblem(error, context));
    send(exchange, { status: error.status, headers: [...Object.entries(headers), ...more], body });
    return;
  }
  const all: Record<string, string> = {
    ...headers,
    "Content-Type": "application/json",
    [TOKEN_COST_FIELD]: "0",
  };
  if (state.ai !== null) all[TOKEN_COST_FIELD] = state.ai.costText;
  // Refused before it was judged.
  if (lacksRisk(exchange, more)) all[RISK_FIELD] = NO_RISK;
  const body = describeAiError(error, form, state.ids.traceId);
  send(exchange, { status: error.status, headers: [...Object.entries(all), ...more], body });
}

function lacksRisk(
  { userData: { route } }: GateExchange,
  fields: readonly (readonly [name: string, value: string])[],
): boolean {
  if (route?.spec.steps.ai?.guard === undefined) return false;
  return !fields.some(([name]) => name === RISK_FIELD);
}

/** The form of errors of a request on an AI route; undefined on other routes. */
export function findErrorForm(exchange: GateExchange): AiErrorForm | undefined {
  if (exchange.userData.route?.spec.steps.ai === undefined) return undefined;
  const version = exchange.head.fields.find("anthropic-version");
  return chooseErrorForm(readSentPath(exchange), version);
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

/** Sends a response that already has the fields of all steps. */
export function answerPrepared(exchange: GateExchange, answer: Answer): void {
  send(exchange, answer);
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
