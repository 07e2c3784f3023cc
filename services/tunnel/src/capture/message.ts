// Parses captured messages: HTTP/1.1 as it was on the wire, possibly cut off.
import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateSync,
  zstdDecompressSync,
} from "node:zlib";
import { Chunk, ChunkedDecoder } from "@platform/http1";
import type { RawMessage } from "./raw-message.ts";

/** Content kept of one message, and the most that is decompressed for display. */
const CONTENT_BYTES_MAX = 65_536;
const DECODED_BYTES_MAX = 1_048_576;

/** A field line: its name as sent, and its value. */
export type Field = readonly [name: string, value: string];

/** A message. */
export interface Message {
  /** Request line or status line. */
  readonly startLine: string;
  readonly fields: readonly Field[];
  /** Content without framing, at most 64 KiB. */
  readonly content: Buffer;
  /** False if content is missing: it was larger, or broke off. */
  readonly isComplete: boolean;
}

/** Parses a captured request; undefined if its head was never sent. */
export function parseRequest(raw: RawMessage): Message | undefined {
  const head = splitHead(raw.bytes, 0);
  if (head === undefined) return undefined;
  const hasContent = find(head.fields, "content-length") ?? find(head.fields, "transfer-encoding");
  return readContent(raw, head, hasContent === undefined ? "none" : "framed");
}

/** Parses the captured final response to a request; undefined if there is none. Informational heads are skipped. */
export function parseResponse(raw: RawMessage, method: string): Message | undefined {
  for (let at = 0; ;) {
    const head = splitHead(raw.bytes, at);
    if (head === undefined) return undefined;
    const status = statusOf(head.startLine);
    if (status >= 100 && status < 200 && status !== 101) {
      at = head.end;
      continue;
    }
    const isEmpty = method === "HEAD" || status === 101 || status === 204 || status === 304;
    return readContent(raw, head, isEmpty ? "none" : "framed");
  }
}

/** Status of a status line, 0 if it is malformed. */
export function statusOf(startLine: string): number {
  return Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(startLine)?.[1] ?? 0);
}

/** First value of a field; `name` in lower case. */
export function find(fields: readonly Field[], name: string): string | undefined {
  return fields.find(([key]) => key.toLowerCase() === name)?.[1];
}

/** Content after its Content-Encoding is removed; undefined if there is none or it cannot be decoded. */
export function decompress({ fields, content }: Message): Buffer | undefined {
  const coding = find(fields, "content-encoding")?.trim().toLowerCase();
  const limits = { maxOutputLength: DECODED_BYTES_MAX };
  // Content that was cut off is decoded as far as possible.
  const zlib = { ...limits, finishFlush: constants.Z_SYNC_FLUSH };
  try {
    switch (coding) {
      case "gzip":
      case "x-gzip":
        return gunzipSync(content, zlib);
      case "deflate":
        return inflateSync(content, zlib);
      case "br":
        return brotliDecompressSync(content, {
          ...limits,
          finishFlush: constants.BROTLI_OPERATION_FLUSH,
        });
      case "zstd":
        return zstdDecompressSync(content, { ...limits, finishFlush: constants.ZSTD_e_flush });
      default:
        return undefined;
    }
  } catch {
    return undefined;
  }
}

interface Head {
  readonly startLine: string;
  readonly fields: Field[];
  /** Offset after the empty line. */
  readonly end: number;
}

function splitHead(bytes: Buffer, start: number): Head | undefined {
  const end = bytes.indexOf("\r\n\r\n", start, "latin1");
  if (end === -1) return undefined;
  const [startLine = "", ...lines] = bytes.toString("latin1", start, end).split("\r\n");
  const fields = lines.map((line): Field => {
    const colon = line.indexOf(":");
    return colon === -1 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  return { startLine, fields, end: end + 4 };
}

function readContent(raw: RawMessage, head: Head, kind: "none" | "framed"): Message {
  const { startLine, fields, end } = head;
  const rest = raw.bytes.subarray(end);
  const { content, isComplete } =
    kind === "none" ? { content: Buffer.alloc(0), isComplete: true } : unframe(fields, rest, raw);
  return {
    startLine,
    fields,
    content: content.subarray(0, CONTENT_BYTES_MAX),
    isComplete: isComplete && content.length <= CONTENT_BYTES_MAX,
  };
}

function unframe(
  fields: readonly Field[],
  rest: Buffer,
  raw: RawMessage,
): Pick<Message, "content" | "isComplete"> {
  if (/(?:^|,)\s*chunked\s*$/i.test(find(fields, "transfer-encoding") ?? "")) return unchunk(rest);
  const length = Number(find(fields, "content-length") ?? Number.NaN);
  // Without a length the content ends with the connection.
  if (Number.isNaN(length)) return { content: rest, isComplete: raw.isWhole };
  return { content: rest.subarray(0, length), isComplete: rest.length >= length };
}

function unchunk(bytes: Buffer): Pick<Message, "content" | "isComplete"> {
  const decoder = new ChunkedDecoder();
  const pieces: Buffer[] = [];
  for (let at = 0; ; at = decoder.next) {
    const status = decoder.execute(bytes, at, bytes.length);
    if (status === Chunk.Data) pieces.push(bytes.subarray(decoder.dataStart, decoder.dataEnd));
    else return { content: Buffer.concat(pieces), isComplete: status === Chunk.Complete };
  }
}
