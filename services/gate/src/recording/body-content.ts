// The content of a recorded body: decoded, redacted, as text or base64.
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import type { RecordedBody, RecordedFields } from "./recorded-exchange.ts";
import type { Redactor } from "./redactor.ts";

/** A coding decodes to at most this many times the limit of recorded bodies. */
const EXPANSION_MAX = 8;
const CODINGS_MAX = 4;

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
  const types = findFields(fields, "content-type");
  if (bytes === 0) return { bytes, text: "" };
  if (types.some((type) => /^\s*multipart\//i.test(type))) return { bytes, omitted: "multipart" };
  const plain = await decodeContent({ fields, content }, bytesMax * EXPANSION_MAX);
  if (plain === undefined) return { bytes, omitted: "coding" };
  const text = readText(plain);
  const type = readMediaType(fields);
  try {
    if (hidesCredential(text ?? plain.toString("latin1"), type, redactor, text === undefined)) {
      return { bytes, omitted: "charset" };
    }
    if (text === undefined) return { bytes, base64: plain.toString("base64") };
    return { bytes, text: redactor.redactBody(text, type) };
  } catch {
    return { bytes, omitted: "json" };
  }
}

/**
 * True for credentials in bytes that cannot be redacted: in another charset than UTF-8, with NULs between the letters of
 * UTF-16, or in text within something binary.
 */
function hidesCredential(
  text: string,
  type: string,
  redactor: Redactor,
  isBinary: boolean,
): boolean {
  const hasNull = text.includes("\0");
  if (!isBinary && !hasNull) return false;
  const letters = hasNull ? text.replaceAll("\0", "") : text;
  return [type, ""].some((each) => redactor.redactBody(letters, each) !== letters);
}

/**
 * Content without its Content-Encoding; undefined if it is unknown, damaged or larger than `bytesMax` without it. A
 * response to HEAD names the coding of a content that it does not have.
 */
export async function decodeContent(
  { fields, content }: WireBody,
  bytesMax: number,
): Promise<Buffer | undefined> {
  if (content.length === 0) return content;
  const codings = findFields(fields, "content-encoding")
    .flatMap((value) => value.split(","))
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== "" && coding !== "identity");
  if (codings.length > CODINGS_MAX) return undefined;
  let plain: Buffer | undefined = content;
  try {
    // The last one was applied last (RFC 9110 section 8.4).
    for (const coding of codings.toReversed()) {
      const decode = Object.hasOwn(DECODERS, coding) ? DECODERS[coding] : undefined;
      plain = plain && (await decode?.(plain, { maxOutputLength: bytesMax }));
    }
    return plain;
  } catch {
    return undefined;
  }
}

/** The media type in lower case, without parameters; "" if there is none, or several that contradict each other. */
export function readMediaType(fields: RecordedFields): string {
  const types = new Set(
    findFields(fields, "content-type").map((value) => value.split(";")[0]!.trim().toLowerCase()),
  );
  const [type = ""] = types;
  return types.size === 1 ? type : "";
}

// `name` in lower case.
function findFields(fields: RecordedFields, name: string): string[] {
  return fields.flatMap(([key, value]) => (key.toLowerCase() === name ? [value] : []));
}

/** Text in UTF-8; undefined if the bytes are not. */
export function readText(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
