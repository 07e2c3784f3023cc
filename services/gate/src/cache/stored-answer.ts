// Answers requests from the store: whole, a range, 304, or only the head.
import { type ContentSource, Known, sendContent } from "@platform/http1";
import {
  type ByteRange,
  describeRange,
  layOutRanges,
  type Segment,
} from "@platform/kernel/content";
import type { PinnedEntry } from "../exchange/cache-ticket.ts";
import type { GateExchange } from "../exchange/exchange.ts";
import type { SharedCache } from "../shared-state/index.ts";
import { findRanges, isNotModified, type Validators } from "./conditions.ts";

/** Bodies up to this size are sent in one write. */
const WHOLE_BYTES_MAX = 32_768;
const PIECE_BYTES = 65_536;
/** Fields of a 304 (RFC 9110 section 15.4.5). */
const KEPT_FIELD = /^(?:cache-control|content-location|date|etag|expires|vary|last-modified)$/i;
/** The line of Content-Type. */
const TYPE_LINE = /^content-type:[^\r]*\r\n/im;
const NO_BYTES = Buffer.alloc(0);

/** Value of X-Cache. */
export type CacheStatus = "HIT" | "STALE";

/** Status line and fields of a stored response. */
export function readHead(cache: SharedCache, { entry, record }: PinnedEntry): string {
  const bytes = Buffer.allocUnsafe(record.headBytes);
  cache.copyHead(entry, bytes, 0);
  return bytes.toString("latin1");
}

/** The validators in a stored head. */
export function readValidators(head: string): Validators {
  return { etag: findLine(head, "ETag"), lastModified: findLine(head, "Last-Modified") };
}

/** Answers with a stored response and unpins it when it has been sent. */
export function answerFromStore(
  exchange: GateExchange,
  cache: SharedCache,
  pinned: PinnedEntry,
  status: CacheStatus,
  ageMs: number,
): void {
  const { entry, record } = pinned;
  const { head } = exchange;
  const isPlain = record.status !== 200 || !mayBePartial(exchange);
  const stored = isPlain ? undefined : readHead(cache, pinned);
  const validators = stored === undefined ? undefined : readValidators(stored);
  const lines = describeLines(exchange, status, ageMs);
  if (stored !== undefined && validators !== undefined) {
    if (isNotModified(head, validators)) {
      sendHead(exchange, 304, `HTTP/1.1 304 Not Modified\r\n${keepFields(stored)}${lines}`);
      cache.unpin(entry);
      return;
    }
    const size = record.bodyBytes;
    const ranges = findRanges(head, size, validators);
    if (ranges?.length === 0) {
      const text = `HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */${size}\r\nContent-Length: 0\r\n`;
      exchange.respond({ status: 416, head: Buffer.from(text + lines, "latin1"), body: NO_BYTES });
      cache.unpin(entry);
      return;
    }
    if (ranges !== undefined) {
      sendRanges(exchange, cache, pinned, ranges, stored, lines);
      return;
    }
  }
  sendBody(
    exchange,
    cache,
    entry,
    record.status,
    undefined,
    lines,
    0,
    record.bodyBytes,
    record.headBytes,
  );
}

function sendRanges(
  exchange: GateExchange,
  cache: SharedCache,
  { entry, record: { bodyBytes: size } }: PinnedEntry,
  ranges: readonly ByteRange[],
  stored: string,
  lines: string,
): void {
  const fields = stored.slice(stored.indexOf("\r\n") + 2);
  const begin = "HTTP/1.1 206 Partial Content\r\n";
  const [range] = ranges;
  if (range !== undefined && ranges.length === 1) {
    const text = `${begin}${fields}Content-Range: ${describeRange(range, size)}\r\n`;
    sendBody(exchange, cache, entry, 206, text, lines, range.start, range.end);
    return;
  }
  // The type of the response moves into its parts (RFC 9110 section 15.3.7.2).
  const others = fields.replace(TYPE_LINE, "");
  const { type, segments, length } = layOutRanges(ranges, size, findLine(stored, "Content-Type"));
  const text = `${begin}${others}Content-Type: ${type}\r\nContent-Length: ${length}\r\n${lines}`;
  const head = Buffer.from(text, "latin1");
  const source = new StoredContent(cache, entry, segments);
  sendContent(exchange, { status: 206, head, isDated: true, contentLength: length }, source);
}

// The head is copied in bytes: creating strings would be most of the work of a hit.
function sendBody(
  exchange: GateExchange,
  cache: SharedCache,
  entry: number,
  status: number,
  text: string | undefined,
  lines: string,
  from: number,
  to: number,
  headBytes = 0,
): void {
  const rest = status === 204 ? lines : `Content-Length: ${to - from}\r\n${lines}`;
  let head: Buffer;
  if (text === undefined) {
    head = Buffer.allocUnsafe(headBytes + rest.length);
    cache.copyHead(entry, head, 0);
    head.write(rest, headBytes, "latin1");
  } else head = Buffer.from(text + rest, "latin1");
  if (to - from <= WHOLE_BYTES_MAX) {
    const body = to === from ? NO_BYTES : cache.readBody(entry, from, to, true);
    exchange.respond({ status, head, body, isDated: true });
    cache.unpin(entry);
    return;
  }
  const source = new StoredContent(cache, entry, [{ start: from, end: to }]);
  sendContent(exchange, { status, head, isDated: true, contentLength: to - from }, source);
}

function sendHead(exchange: GateExchange, status: number, text: string): void {
  exchange.respond({ status, head: Buffer.from(text, "latin1"), body: NO_BYTES, isDated: true });
}

function mayBePartial({ head }: GateExchange): boolean {
  const { fields } = head;
  return (
    fields.has(Known.Range) || fields.has(Known.IfNoneMatch) || fields.has(Known.IfModifiedSince)
  );
}

function describeLines(exchange: GateExchange, status: CacheStatus, ageMs: number): string {
  let lines = `Age: ${Math.max(0, Math.floor(ageMs / 1_000))}\r\nX-Cache: ${status}\r\n`;
  for (const [name, value] of exchange.userData.responseFields.list())
    lines += `${name}: ${value}\r\n`;
  return lines;
}

function keepFields(head: string): string {
  const lines = head
    .split("\r\n")
    .filter((line) => KEPT_FIELD.test(line.slice(0, line.indexOf(":"))));
  return lines.map((line) => `${line}\r\n`).join("");
}

function findLine(head: string, name: string): string | undefined {
  const match = new RegExp(`\r\n${name}:[ \t]*([^\r]*)`, "i").exec(head);
  return match?.[1];
}

/** Parts of a stored body, in pieces; its entry stays pinned until `close`. */
class StoredContent implements ContentSource {
  readonly #cache: SharedCache;
  readonly #entry: number;
  readonly #segments: readonly Segment[];
  #index = 0;
  /** Bytes of the segment that have been read. */
  #done = 0;

  constructor(cache: SharedCache, entry: number, segments: readonly Segment[]) {
    this.#cache = cache;
    this.#entry = entry;
    this.#segments = segments;
  }

  read(): Buffer | null {
    const segment = this.#segments[this.#index];
    if (segment === undefined) return null;
    if (Buffer.isBuffer(segment)) {
      this.#index++;
      return segment;
    }
    const from = segment.start + this.#done;
    const to = Math.min(segment.end, from + PIECE_BYTES);
    this.#done += to - from;
    if (to === segment.end) {
      this.#index++;
      this.#done = 0;
    }
    return this.#cache.readBody(this.#entry, from, to, false);
  }

  close(): void {
    this.#cache.unpin(this.#entry);
  }
}
