// Reads and checks JSON bodies of the API; what is wrong is told with its place.
import { JsonSyntaxError, parseJson, validateJson } from "@platform/kernel/config";
import { PlatformError } from "@platform/kernel/errors";
import type * as z from "zod";

const bodyBytesMax = 16 * 1024 * 1024;

/**
 * The request's JSON body as the schema gives it out. Throws `unsupported_media_type`, `payload_too_large` or
 * `validation_failed`, the last with an `errors` list of {path, message, source}.
 */
export async function readJsonBody<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
): Promise<z.output<Schema>> {
  const type = request.headers.get("content-type");
  if (type !== null && !/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type)) {
    throw new PlatformError("unsupported_media_type", "the body must be application/json");
  }
  const document = parseBody(await readText(request));
  const result = validateJson(schema, document, { name: "body" });
  if (result.ok) return result.value;
  const errors = result.problems.slice(0, 100);
  const detail = errors
    .slice(0, 10)
    .map(({ source, path, message }) =>
      path === "" ? `${source}: ${message}` : `${source}: ${path}: ${message}`,
    )
    .join("\n");
  throw new PlatformError("validation_failed", detail, { fields: { errors } });
}

function parseBody(text: string): ReturnType<typeof parseJson> {
  try {
    return parseJson(text, { textMax: bodyBytesMax });
  } catch (cause) {
    if (!(cause instanceof JsonSyntaxError)) throw cause;
    const { line, column } = cause.position;
    throw new PlatformError("validation_failed", `body:${line}:${column}: ${cause.message}`);
  }
}

async function readText(request: Request): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) {
      throw new PlatformError("payload_too_large", `the body has more than ${bodyBytesMax} bytes`);
    }
    chunks.push(chunk);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch (cause) {
    throw new PlatformError("validation_failed", "the body is not UTF-8", { cause });
  }
}
