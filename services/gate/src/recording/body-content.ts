// The content of a recorded body: decoded, redacted, as text or base64.
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import type { RecordedBody, RecordedFields } from "./recorded-exchange.ts";
import type { Redactor } from "./redactor.ts";

/** A coding decodes to at most this many times the limit of recorded bodies. */
const EXPANSION_MAX = 8;

const DECODERS: Readonly<
  Record<string, (content: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>
> = {
  gzip: promisify(zlib.gunzip),
  "x-gzip": promisify(zlib.gunzip),
  deflate: promisify(zlib.inflate),
  br: promisify(zlib.brotliDecompress),
  zstd: promisify(zlib.zstdDecompress),
};

/** A body on the wire. */
export interface WireBody {
  fields: RecordedFields;
  content: Buffer;
}

/** Describes a body. What cannot be redacted is omitted. */
export async function describeBody(
  { fields, content }: WireBody,
  redactor: Redactor,
  bytesMax: number,
): Promise<RecordedBody> {
  const bytes = content.length;
  const type = readMediaType(fields);
  if (bytes === 0) return { bytes, text: "" };
  if (type.startsWith("multipart/")) return { bytes, omitted: "multipart" };
  const plain = await decodeContent({ fields, content }, bytesMax * EXPANSION_MAX);
  if (plain === undefined) return { bytes, omitted: "coding" };
  const text = readText(plain);
  if (text === undefined) return { bytes, base64: plain.toString("base64") };
  try {
    return { bytes, text: redactor.redactBody(text, type) };
  } catch {
    return { bytes, omitted: "json" };
  }
}

/** Content without its Content-Encoding; undefined if it is unknown, damaged or larger than `bytesMax` without it. */
export async function decodeContent(
  { fields, content }: WireBody,
  bytesMax: number,
): Promise<Buffer | undefined> {
  const coding = findField(fields, "content-encoding")?.trim().toLowerCase() ?? "identity";
  if (coding === "identity") return content;
  const decode = Object.hasOwn(DECODERS, coding) ? DECODERS[coding] : undefined;
  try {
    return await decode?.(content, { maxOutputLength: bytesMax });
  } catch {
    return undefined;
  }
}

/** The media type in lower case, without parameters; "" if there is none. */
export function readMediaType(fields: RecordedFields): string {
  return (findField(fields, "content-type") ?? "").split(";")[0]!.trim().toLowerCase();
}

// `name` in lower case.
function findField(fields: RecordedFields, name: string): string | undefined {
  return fields.find(([key]) => key.toLowerCase() === name)?.[1];
}

/** Text in UTF-8; undefined if the bytes are not. */
export function readText(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
