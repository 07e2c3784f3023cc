// Parses and validates JSON request bodies; errors name the location, the value and the allowed values.
import {
  type ConfigProblem,
  JsonSyntaxError,
  parseJson,
  validateJson,
} from "@platform/kernel/config";
import { PlatformError } from "@platform/kernel/errors";
import { checkJsonType } from "@platform/kernel/http";
import type { z } from "zod";

const PROBLEMS_SHOWN_MAX = 10;
const PROBLEMS_MAX = 50;

/** Maximum size of a JSON body in bytes. */
export const JSON_BODY_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Returns the output of the schema. Throws `unsupported_media_type`, or `validation_failed` with a list `errors` of
 * {in, path, message, source, code, params}.
 */
export function readJsonBody<Schema extends z.ZodType>(
  body: Uint8Array,
  headers: Headers,
  schema: Schema,
): z.output<Schema> {
  checkJsonType(headers.get("content-type"));
  const document = parseBody(body);
  const result = validateJson(schema, document, { name: "body" });
  if (result.ok) return result.value;
  const { problems } = result;
  throw new PlatformError(
    "validation_failed",
    problems.slice(0, PROBLEMS_SHOWN_MAX).map(formatProblem).join("\n"),
    {
      fields: {
        errors: problems.slice(0, PROBLEMS_MAX).map((problem) => ({ in: "body", ...problem })),
      },
    },
  );
}

function parseBody(body: Uint8Array): ReturnType<typeof parseJson> {
  try {
    return parseJson(new TextDecoder("utf-8", { fatal: true }).decode(body), {
      textMax: JSON_BODY_BYTES_MAX,
    });
  } catch (cause) {
    if (cause instanceof JsonSyntaxError) {
      const { line, column } = cause.position;
      const { message } = cause;
      const source = `body:${line}:${column}`;
      throw new PlatformError("validation_failed", `${source}: ${message}`, {
        fields: { errors: [{ in: "body", path: "", message, source, code: "json_syntax" }] },
      });
    }
    throw new PlatformError("validation_failed", "the body is not UTF-8", { cause });
  }
}

function formatProblem({ source, path, message }: ConfigProblem): string {
  return path === "" ? `${source}: ${message}` : `${source}: ${path}: ${message}`;
}
