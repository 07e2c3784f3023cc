// Checks JSON bodies of the API; what is wrong is told with its place, its value and what is allowed.
import {
  type ConfigProblem,
  JsonSyntaxError,
  parseJson,
  validateJson,
} from "@platform/kernel/config";
import { PlatformError } from "@platform/kernel/errors";
import type * as z from "zod";

const PROBLEMS_SHOWN_MAX = 10;
const PROBLEMS_MAX = 50;

/** Longest JSON body that the API reads, in bytes. */
export const JSON_BODY_BYTES_MAX = 16 * 1024 * 1024;

/**
 * A JSON body as the schema gives it out. Throws `unsupported_media_type` or `validation_failed`, the latter with a list
 * `errors` of {in, path, message}. A body without Content-Type is taken for JSON, as `curl -d @file` users expect it to be.
 */
export function readJsonBody<Schema extends z.ZodType>(
  body: Uint8Array,
  headers: Headers,
  schema: Schema,
): z.output<Schema> {
  const type = headers.get("content-type");
  // What curl and fetch send of their own accord is not what a caller meant.
  const isMeant =
    type !== null && !/^(?:application\/x-www-form-urlencoded|text\/plain)/i.test(type);
  if (isMeant && !/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type)) {
    throw new PlatformError("unsupported_media_type", "the body must be application/json", {
      headers: { "Accept-Post": "application/json" },
    });
  }
  const document = parseBody(body);
  const result = validateJson(schema, document, { name: "body" });
  if (result.ok) return result.value;
  const { problems } = result;
  throw new PlatformError(
    "validation_failed",
    problems.slice(0, PROBLEMS_SHOWN_MAX).map(formatProblem).join("\n"),
    {
      fields: {
        errors: problems
          .slice(0, PROBLEMS_MAX)
          .map(({ path, message, source }) => ({ in: "body", path, message, source })),
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
      throw new PlatformError("validation_failed", `body:${line}:${column}: ${cause.message}`);
    }
    throw new PlatformError("validation_failed", "the body is not UTF-8", { cause });
  }
}

function formatProblem({ source, path, message }: ConfigProblem): string {
  return path === "" ? `${source}: ${message}` : `${source}: ${path}: ${message}`;
}
