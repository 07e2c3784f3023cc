// Answers with an object. Its bytes are those of a user, on the origin of the console: no browser may run them.
import type { S3Answer } from "../../s3/answer.ts";
import type { ObjectBody } from "../../model/object.ts";

/** Headers of S3 that an answer keeps, besides `x-amz-…`. */
const KEPT: ReadonlySet<string> = new Set([
  "accept-ranges",
  "content-encoding",
  "content-language",
  "content-range",
  "content-type",
  "etag",
  "last-modified",
]);
const SAFE_HEADERS = {
  "content-security-policy": "sandbox; default-src 'none'",
  "x-content-type-options": "nosniff",
  "cache-control": "private, no-cache",
};

/** The answer to GET or HEAD of an object. */
export function answerObject(answer: S3Answer, method: string, key: string): Response {
  const headers = copyHeaders(answer);
  for (const [name, value] of Object.entries(SAFE_HEADERS)) headers.set(name, value);
  headers.set("content-disposition", formatAttachment(key));
  const { status, object, contentLength } = answer;
  if (contentLength !== undefined) headers.set("content-length", String(contentLength));
  if (method === "HEAD" || object === undefined) {
    object?.close();
    return new Response(null, { status, headers });
  }
  return new Response(createStream(object), { status, headers });
}

/** The headers of an answer that both APIs have. */
function copyHeaders({ headers = [] }: S3Answer): Headers {
  const copied = new Headers();
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    if (lower.startsWith("x-amz-") || KEPT.has(lower)) copied.append(lower, value);
  }
  return copied;
}

/** The value of a header in an answer. */
export function readHeader({ headers = [] }: S3Answer, name: string): string | undefined {
  return headers.find(([given]) => given.toLowerCase() === name)?.[1];
}

// The last segment of the key is the name of the file (RFC 6266, RFC 8187).
function formatAttachment(key: string): string {
  const name = key.split("/").findLast((segment) => segment !== "") ?? "object";
  const encoded = encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename*=UTF-8''${encoded}`;
}

function createStream(object: ObjectBody): ReadableStream<Uint8Array> {
  const chunks = object.chunks();
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const next = await chunks.next();
        if (next.done !== true) {
          controller.enqueue(next.value);
          return;
        }
        object.close();
        controller.close();
      },
      cancel: async () => {
        await chunks.return();
        object.close();
      },
    },
    { highWaterMark: 0 },
  );
}
