// Responses of the engine itself: problem documents (RFC 9457) with the platform's closed list of codes.
import {
  getProblemHeaders,
  PlatformError,
  toProblem,
  type ErrorCode,
} from "@platform/kernel/errors";

import { type PreparedAnswer, prepareAnswer } from "./index.ts";
import type { Refused } from "./refused.ts";

const CODES: Readonly<Record<Refused["status"], ErrorCode>> = {
  400: "bad_request",
  408: "request_timeout",
  413: "payload_too_large",
  414: "uri_too_long",
  431: "header_fields_too_large",
  500: "internal",
  501: "not_implemented",
  502: "upstream_invalid_response",
  505: "http_version_not_supported",
};

/** Creates the response for a code and a detail; `reason` is a more specific code. */
export function prepareProblem(code: ErrorCode, detail: string, reason?: string): PreparedAnswer {
  const error = new PlatformError(code, detail, reason === undefined ? {} : { fields: { reason } });
  return prepareAnswer({
    status: error.status,
    headers: Object.entries(getProblemHeaders(error)),
    body: JSON.stringify(toProblem(error)),
  });
}

/** Creates the response for a refused request: the code of its status, with the refusal's own code as `reason`. */
export function prepareRefusal(refused: Refused): PreparedAnswer {
  const code = CODES[refused.status];
  return prepareProblem(code, refused.detail, refused.code === code ? undefined : refused.code);
}
