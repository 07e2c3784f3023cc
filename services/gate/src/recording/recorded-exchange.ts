// The lines of a recording: one exchange with the upstream each, as JSON. Written by workers, which load only its types; read
// by `replay`.
import { z } from "zod";

/** Reasons why the content of a body is not recorded. */
const OMISSIONS = ["too-large", "multipart", "coding", "json", "charset", "prompts"] as const;

const BYTES_MAX = Number.MAX_SAFE_INTEGER;

const fieldsSchema = z.array(z.tuple([z.string(), z.string()]));

const bodySchema = z.union([
  z.object({ bytes: z.int().min(0).max(BYTES_MAX), text: z.string() }),
  z.object({ bytes: z.int().min(0).max(BYTES_MAX), base64: z.base64() }),
  z.object({
    bytes: z.int().min(0).max(BYTES_MAX),
    omitted: z.enum(OMISSIONS),
    sha256: z.string().optional(),
  }),
]);

const requestSchema = z.object({
  method: z.string().regex(/^(?!CONNECT$)[!#$%&'*+.^_`|~0-9A-Za-z-]+$/),
  target: z.string().startsWith("/"),
  headers: fieldsSchema,
  body: bodySchema,
});

const lineSchema = z.object({
  timestamp: z.string(),
  latency_ms: z.number(),
  upstream_ms: z.number(),
  request: requestSchema,
  original: requestSchema.partial({ body: true }).optional(),
  response: z.object({
    status: z.int().min(200).max(999),
    headers: fieldsSchema,
    body: bodySchema,
  }),
});

/**
 * The content of one body. `bytes` is its size on the wire, without framing. `text` or `base64` are the content without
 * its Content-Encoding, with credentials redacted. `sha256` in hex is that of a response which is too large to be
 * recorded and has no Content-Encoding.
 */
export type RecordedBody = z.output<typeof bodySchema>;

/** Header fields in the order of the message. */
export type RecordedFields = z.output<typeof fieldsSchema>;

/**
 * Fields of a recording that replaying uses; lines have those of the access log as well. `request` is what the upstream
 * received; `original` is what a guest of the gateway received, if it has changed it: without a body if that is the same.
 */
export type RecordedExchange = z.output<typeof lineSchema>;

/** Reads a line; undefined if it is not one of a recording. */
export function readRecordedExchange(line: string): RecordedExchange | undefined {
  try {
    return lineSchema.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}

/** An exchange with the request that guests and policies of the gateway received, in the place of the upstream's. */
export function restoreOriginal(recorded: RecordedExchange): RecordedExchange {
  const { request, original } = recorded;
  if (original === undefined) return recorded;
  const { body = request.body } = original;
  return { ...recorded, request: { ...original, body } };
}
