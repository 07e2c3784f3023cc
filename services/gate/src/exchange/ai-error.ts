// Errors of the gateway on AI routes, in the forms that the clients of OpenAI and Anthropic read.
import type { PlatformError } from "@platform/kernel/errors";

/** A form of errors. */
export type AiErrorForm = "openai" | "anthropic";

/** `type` by status, after the references of the two APIs; others below 500 are `invalid_request_error`. */
const OPENAI_TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
};
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
};

/** Chooses the form of a request's errors by its path, or by the version that clients of Anthropic send. */
export function chooseErrorForm(path: string, anthropicVersion: string | undefined): AiErrorForm {
  const isMessages = /\/messages(?:\/count_tokens|\/batches)?\/?$/.test(path);
  return isMessages || anthropicVersion !== undefined ? "anthropic" : "openai";
}

/** The JSON of an error. `param` of the error's fields names the member of the request at fault. */
export function describeAiError(error: PlatformError, form: AiErrorForm, traceId: string): string {
  const { code, detail: message } = error;
  const { param } = error.fields;
  const type = describeType(error, form);
  if (form === "anthropic") {
    const member = typeof param === "string" && param !== "" ? { param } : {};
    return JSON.stringify({
      type: "error",
      error: { type, message, code, ...member },
      request_id: traceId,
    });
  }
  return JSON.stringify({
    error: { message, type, param: typeof param === "string" && param !== "" ? param : null, code },
  });
}

/** The event that ends a stream with an error. */
export function describeErrorEvent(
  error: PlatformError,
  form: AiErrorForm,
  traceId: string,
): string {
  return `event: error\ndata: ${describeAiError(error, form, traceId)}\n\n`;
}

function describeType({ code, status }: PlatformError, form: AiErrorForm): string {
  if (code === "insufficient_quota" && form === "openai") return code;
  const types = form === "openai" ? OPENAI_TYPES : ANTHROPIC_TYPES;
  const rest = form === "openai" ? "server_error" : "api_error";
  return types[status] ?? (status < 500 ? "invalid_request_error" : rest);
}
