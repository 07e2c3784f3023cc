// Byte ranges of a representation (RFC 9110 section 14): one is sent as it is, several as multipart/byteranges.
import { randomBytes } from "node:crypto";

/** Bytes `[start, end)`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Content of a response in order: bytes of its own, and ranges of the representation. */
export type Segment = Buffer | ByteRange;

/** A response with several ranges. */
export interface Multipart {
  /** Value of Content-Type. */
  readonly type: string;
  readonly segments: readonly Segment[];
  readonly length: number;
}

/** Ranges of one request; more are ignored, as RFC 9110 section 14.2 allows: the whole representation is sent. */
export const RANGES_MAX = 16;
/** Ranges with a smaller gap become one: the head of a part is longer than that. */
const GAP_BYTES_MIN = 80;
const BOUNDARY_BYTES = 15;

/**
 * Reads the value of Range for a representation of `size` bytes. Undefined if the field is malformed or has too many
 * ranges, and must be ignored; an empty list if none of its ranges is satisfiable (416). Ranges that overlap become one,
 * so that their sum never exceeds `size`; others stay in the order of the request.
 */
export function readRanges(field: string, size: number): readonly ByteRange[] | undefined {
  const list = /^bytes[ \t]*=([\d\-, \t]+)$/i.exec(field)?.[1];
  const texts = list?.split(",").filter((text) => text.trim() !== "");
  if (texts === undefined || texts.length === 0 || texts.length > RANGES_MAX) return undefined;
  const ranges: ByteRange[] = [];
  for (const text of texts) {
    const range = readRange(text.trim(), size);
    if (range === undefined) return undefined;
    if (range.start < range.end) ranges.push(range);
  }
  return joinClose(ranges);
}

/** Lays out several ranges as multipart/byteranges (RFC 9110 section 14.6); `type` is that of the representation. */
export function layOutRanges(
  ranges: readonly ByteRange[],
  size: number,
  type: string | undefined,
): Multipart {
  const boundary = randomBytes(BOUNDARY_BYTES).toString("hex");
  const typeLine = type === undefined ? "" : `Content-Type: ${type}\r\n`;
  const segments: Segment[] = [];
  let length = 0;
  for (const range of ranges) {
    const lines = `${typeLine}Content-Range: ${describeRange(range, size)}\r\n`;
    const head = Buffer.from(`\r\n--${boundary}\r\n${lines}\r\n`, "latin1");
    segments.push(head, range);
    length += head.length + range.end - range.start;
  }
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  segments.push(tail);
  return {
    type: `multipart/byteranges; boundary=${boundary}`,
    segments,
    length: length + tail.length,
  };
}

/** The value of Content-Range. */
export function describeRange({ start, end }: ByteRange, size: number): string {
  return `bytes ${start}-${end - 1}/${size}`;
}

/** One range; empty if it is not satisfiable, undefined if it is malformed. */
function readRange(text: string, size: number): ByteRange | undefined {
  const found = /^(\d{0,15})-(\d{0,15})$/.exec(text);
  if (found === null || text === "-") return undefined;
  const [, first = "", last = ""] = found;
  if (first === "") return { start: Math.max(0, size - Number(last)), end: size };
  const start = Number(first);
  if (last === "") return { start, end: size };
  if (Number(last) < start) return undefined;
  return { start, end: Math.min(Number(last) + 1, size) };
}

function joinClose(ranges: readonly ByteRange[]): readonly ByteRange[] {
  const sorted = ranges.toSorted((one, other) => one.start - other.start);
  const joined: ByteRange[] = [];
  for (const range of sorted) {
    const before = joined.at(-1);
    if (before === undefined || range.start - before.end >= GAP_BYTES_MIN) joined.push(range);
    else joined[joined.length - 1] = { ...before, end: Math.max(before.end, range.end) };
  }
  return joined.length === ranges.length ? ranges : joined;
}
