// Refusals of the HTTP engine, in the form of the object API's errors.
import type { Answer, Refused } from "@platform/http1";
import type { ErrorCode } from "../model/errors.ts";
import { S3Error } from "../model/s3-error.ts";
import { answerError, completeHeaders } from "./answer.ts";
import type { RequestIds } from "./request-ids.ts";

/** Refusals with their own S3 code. */
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

/** The longest path that an answer repeats: longer than any escaped key. */
const RESOURCE_CHARACTERS_MAX = 4_096;

/** Builds the answer to a request that the engine refuses: `BadRequest` with the engine's status if S3 has no code. */
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
