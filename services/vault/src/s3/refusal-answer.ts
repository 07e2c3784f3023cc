// What the HTTP engine refuses before an operation is chosen, as the object API's clients read errors.
import type { Answer, Refused } from "@platform/http1";
import type { ErrorCode } from "../model/errors.ts";
import { S3Error } from "../model/s3-error.ts";
import { answerError, completeHeaders } from "./answer.ts";
import type { RequestIds } from "./request-ids.ts";

/** Refusals that S3 has a code of its own for. */
const CODES = new Map<string, ErrorCode>([
  ["bad_percent", "InvalidURI"],
  ["bad_target", "InvalidURI"],
  ["target_too_long", "RequestHeaderSectionTooLarge"],
  ["too_many_fields", "RequestHeaderSectionTooLarge"],
  ["head_too_large", "RequestHeaderSectionTooLarge"],
  ["payload_too_large", "EntityTooLarge"],
  ["request_timeout", "RequestTimeout"],
  ["method_too_long", "MethodNotAllowed"],
  ["not_implemented", "MethodNotAllowed"],
  ["transfer_coding_unknown", "NotImplemented"],
  ["internal", "InternalError"],
]);

/** As much of a path as an answer repeats: more than any key takes, escapes and all. */
const RESOURCE_CHARACTERS_MAX = 4_096;

/** Makes the answer to a request that the engine refuses: `BadRequest` with the engine's status where S3 has no code. */
export function answerRefusal(refused: Refused, path: string, ids: RequestIds): Answer {
  const code = CODES.get(refused.code);
  const error = new S3Error(
    code ?? "BadRequest",
    code === undefined
      ? refused.detail
      : { headers: code === "MethodNotAllowed" ? [["Allow", "GET, HEAD, PUT, POST, DELETE"]] : [] },
  );
  const id = ids.next();
  const { headers, body = "" } = answerError(error, path.slice(0, RESOURCE_CHARACTERS_MAX), id);
  return {
    status: code === undefined ? refused.status : error.status,
    headers: completeHeaders(id, headers),
    body,
  };
}
