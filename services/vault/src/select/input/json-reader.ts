// Records of JSON: one value per line, or any values one after another.
import type { Getter } from "../language/evaluator.ts";
import type { ColumnReference, PathStep, SourceStep } from "../language/syntax.ts";
import type { Value } from "../language/value.ts";
import { ByteQueue } from "./byte-queue.ts";
import { equalsBytes, isAscii, readInteger } from "./byte-values.ts";
import { scanJsonLines } from "./json-kernel.ts";
import { JsonWalker } from "./json-walker.ts";
import { malformed, skipSpace, skipValue } from "./json-scan.ts";
import {
  followStep,
  readCell,
  readString,
  readText,
  readValue,
  requireUnambiguous,
  type Span,
  visitMembers,
} from "./json-value.ts";
import { matchesName, requireRecordSize, type RowFields, type StreamReader } from "./row-reader.ts";
import type { ScanAhead } from "./scan-ahead.ts";

const LINE_FEED = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const CASE_BIT = 0x20;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const COMMA = 0x2c;
const COLON = 0x3a;
/** Members that are remembered from line to line, and the length of their names. */
const KNOWN_MEMBERS_MAX = 256;
const KNOWN_BYTES_MAX = 256;

/** A member of the row that the question needs. */
interface Slot {
  readonly step: Extract<PathStep, { kind: "name" }>;
  /** The name, in UTF-8. */
  readonly bytes: Buffer;
  readonly isAscii: boolean;
  found: string | undefined;
  readonly span: Span;
}

/** A member of the lines before: its name as it stands, and the slots that it fills. */
interface KnownMember {
  readonly bytes: Buffer;
  readonly slots: readonly { readonly slot: Slot; readonly name: string }[];
}

/** Options of a reader of JSON. */
export interface JsonReaderOptions {
  readonly isLines: boolean;
  /** Steps from the records of the object to the rows. */
  readonly source: readonly SourceStep[];
}

export class JsonReader implements StreamReader {
  readonly isText = false;
  readonly isReady = true;
  readonly #queue = new ByteQueue();
  readonly #walker: JsonWalker | undefined;
  readonly #slots: Slot[] = [];
  readonly #ahead: ScanAhead = scanJsonLines();
  /** By their order, as lines mostly have the same members. */
  readonly #known: KnownMember[] = [];
  readonly #row: Span = { start: -1, end: -1 };
  #bytes: Buffer = Buffer.alloc(0);
  #endOffset = Infinity;
  /** The row whose members the slots hold. */
  #isIndexed = false;

  constructor({ isLines, source }: JsonReaderOptions) {
    this.#walker = isLines && source.length === 0 ? undefined : new JsonWalker(this.#queue, source);
  }

  feed(bytes: Buffer): void {
    this.#ahead.reset();
    this.#queue.feed(bytes);
  }

  end(): void {
    this.#queue.isEnded = true;
  }

  stopAfter(offset: number): void {
    this.#endOffset = offset;
  }

  get isStopped(): boolean {
    return this.#queue.offset >= this.#endOffset && this.#walker?.isAtRoot !== false;
  }

  next(): boolean {
    this.#isIndexed = false;
    this.#bytes = this.#queue.bytes;
    const row = this.#row;
    if (this.#walker === undefined) {
      if (!this.#nextLine()) return false;
    } else if (!this.#walker.next(row, this.#endOffset)) return false;
    return true;
  }

  bindValue(path: readonly PathStep[]): Getter {
    return this.#bind(path, readValue);
  }

  bindInteger(path: readonly PathStep[]): () => number | undefined {
    return this.#bind(path, (bytes, start, end) =>
      start < 0 ? undefined : readInteger(bytes, start, end),
    );
  }

  bindEquals(
    path: readonly PathStep[],
    _column: ColumnReference,
    text: string,
  ): () => boolean | undefined {
    const expected = Buffer.from(text);
    return this.#bind(path, (bytes, start, end) => compareString(bytes, start, end, expected));
  }

  bindCell(path: readonly PathStep[]): Getter {
    return this.#bind(path, readCell);
  }

  bindFields(): () => RowFields {
    return () => this.#readFields();
  }

  #readFields(): RowFields {
    const { start, end } = this.#row;
    const bytes = this.#bytes;
    if (start < 0) return { names: [], cells: [] };
    if (bytes[start] !== OPEN_OBJECT) {
      return { names: ["_1"], cells: [readCell(bytes, start, end)] };
    }
    const names: string[] = [];
    const cells: Value[] = [];
    visitMembers(bytes, start, end, (nameStart, nameEnd, valueStart, valueEnd) => {
      names.push(readString(bytes, nameStart, nameEnd));
      cells.push(readCell(bytes, valueStart, valueEnd));
    });
    return { names, cells };
  }

  readObjectText(): string | undefined {
    const { start, end } = this.#row;
    if (start < 0) return "{}";
    const text = readText(this.#bytes, start, end);
    return this.#bytes[start] === OPEN_OBJECT ? text : `{"_1":${text}}`;
  }

  #nextLine(): boolean {
    const queue = this.#queue;
    for (;;) {
      const { bytes, at } = queue;
      if (queue.offset >= this.#endOffset) return false;
      if (this.#ahead.next(bytes, at) && this.#readMarked(bytes, at)) return true;
      const found = bytes.indexOf(LINE_FEED, at);
      if (found < 0 && !queue.isEnded) {
        requireRecordSize(bytes.length - at - 1);
        return false;
      }
      const end = found < 0 ? bytes.length : found;
      const start = skipSpace(bytes, at, end);
      if (start < end) {
        requireRecordSize(end - start);
        const valueEnd = this.#checkLine(bytes, start, end);
        if (skipSpace(bytes, valueEnd, end) < end) throw malformed("more than one value in a line");
        this.#row.start = start;
        this.#row.end = valueEnd;
        queue.skipTo(found < 0 ? end : end + 1);
        return true;
      }
      if (found < 0) return false;
      queue.skipTo(end + 1);
    }
  }

  // Reads a line by the marks of a scan. False for whatever is not an object, or unusual: it is looked at byte by byte then.
  #readMarked(bytes: Buffer, start: number): boolean {
    const { base, words, behind } = this.#ahead;
    const end = base + words[behind - 1]!;
    let mark = this.#ahead.first;
    if (base + words[mark]! !== start || bytes[start] !== OPEN_OBJECT) return false;
    this.#clearSlots();
    for (let member = 0; ; member += 1) {
      // The mark before is a brace or a comma.
      const open = skipSpace(bytes, base + words[mark]! + 1, end);
      const close = base + words[mark + 2]!;
      const colon = base + words[mark + 3]!;
      if (mark + 4 >= behind || open !== base + words[mark + 1]! || bytes[open] !== QUOTE) {
        return false;
      }
      if (colon !== close + 1 || bytes[colon] !== COLON) return false;
      mark += 4;
      const valueStart = skipSpace(bytes, colon + 1, end);
      let valueEnd: number;
      if (bytes[valueStart] === QUOTE) {
        valueEnd = base + words[mark + 1]! + 1;
        mark += 2;
      } else {
        valueEnd = skipValue(bytes, valueStart, end, true);
        while (base + words[mark]! < valueEnd) mark += 1;
      }
      const next = base + words[mark]!;
      if (next !== valueEnd && skipSpace(bytes, valueEnd, next) !== next) return false;
      this.#fillSlots(member, open, close + 1, valueStart, valueEnd);
      if (bytes[next] === COMMA) continue;
      if (bytes[next] !== CLOSE_OBJECT || skipSpace(bytes, next + 1, end) !== end) return false;
      this.#row.start = start;
      this.#row.end = next + 1;
      this.#queue.skipTo(end + 1);
      return true;
    }
  }

  // Members that the question needs are found on the way.
  #checkLine(bytes: Buffer, start: number, end: number): number {
    if (this.#slots.length === 0 || bytes[start] !== OPEN_OBJECT) {
      return skipValue(bytes, start, end, true);
    }
    return this.#indexMembers(bytes, start, end);
  }

  #bind<Result>(
    path: readonly PathStep[],
    read: (bytes: Buffer, start: number, end: number) => Result,
  ): () => Result {
    const [first, ...rest] = path;
    const row = this.#row;
    if (first === undefined) return () => read(this.#bytes, row.start, row.end);
    const span: Span = { start: -1, end: -1 };
    if (first.kind === "index") {
      return () => {
        span.start = row.start;
        span.end = row.end;
        for (const step of path) followStep(this.#bytes, span, step);
        return read(this.#bytes, span.start, span.end);
      };
    }
    const slot = this.#addSlot(first);
    if (rest.length === 0) {
      return () => {
        if (!this.#isIndexed) this.#indexRow();
        return read(this.#bytes, slot.span.start, slot.span.end);
      };
    }
    return () => {
      if (!this.#isIndexed) this.#indexRow();
      span.start = slot.span.start;
      span.end = slot.span.end;
      for (const step of rest) followStep(this.#bytes, span, step);
      return read(this.#bytes, span.start, span.end);
    };
  }

  #addSlot(step: Slot["step"]): Slot {
    const known = this.#slots.find(
      (slot) => slot.step.name === step.name && slot.step.isQuoted === step.isQuoted,
    );
    if (known !== undefined) return known;
    this.#known.length = 0;
    const span = { start: -1, end: -1 };
    const bytes = Buffer.from(step.name);
    const slot: Slot = { step, bytes, isAscii: isAscii(bytes), found: undefined, span };
    this.#slots.push(slot);
    return slot;
  }

  #indexRow(): void {
    const { start, end } = this.#row;
    if (start >= 0 && this.#bytes[start] === OPEN_OBJECT) {
      this.#indexMembers(this.#bytes, start, end);
      return;
    }
    this.#isIndexed = true;
    for (const slot of this.#slots) slot.span.start = -1;
  }

  // One pass finds all members that the question needs. Returns the end of the object.
  #indexMembers(bytes: Buffer, start: number, end: number): number {
    this.#clearSlots();
    let member = 0;
    return visitMembers(bytes, start, end, (nameStart, nameEnd, valueStart, valueEnd) => {
      this.#fillSlots(member, nameStart, nameEnd, valueStart, valueEnd);
      member += 1;
    });
  }

  #clearSlots(): void {
    this.#isIndexed = true;
    const slots = this.#slots;
    for (let index = 0; index < slots.length; index += 1) {
      const slot = slots[index]!;
      slot.found = undefined;
      slot.span.start = -1;
    }
  }

  // The positions of a name include its quotes.
  #fillSlots(
    member: number,
    nameStart: number,
    nameEnd: number,
    valueStart: number,
    valueEnd: number,
  ): void {
    if (this.#slots.length === 0) return;
    let known = this.#known[member];
    if (known === undefined || !equalsBytes(this.#bytes, nameStart, nameEnd, known.bytes)) {
      known = this.#matchMember(nameStart, nameEnd);
      const isKept = member < KNOWN_MEMBERS_MAX && known.bytes.length <= KNOWN_BYTES_MAX;
      if (isKept) this.#known[member] = known;
    }
    const { slots } = known;
    for (let index = 0; index < slots.length; index += 1) {
      const { slot, name } = slots[index]!;
      requireUnambiguous(slot.found, name);
      slot.found = name;
      slot.span.start = valueStart;
      slot.span.end = valueEnd;
    }
  }

  #matchMember(nameStart: number, nameEnd: number): KnownMember {
    const bytes = Buffer.from(this.#bytes.subarray(nameStart, nameEnd));
    const slots = this.#slots.flatMap((slot) => {
      const name = matchName(slot, bytes, 0, bytes.length);
      return name === undefined ? [] : [{ slot, name }];
    });
    return { bytes, slots };
  }
}

/** The name of a member if the slot means it. Most names are compared as bytes; escapes and other letters are not. */
function matchName(
  slot: Slot,
  bytes: Buffer,
  nameStart: number,
  nameEnd: number,
): string | undefined {
  const { step, bytes: expected } = slot;
  const start = nameStart + 1;
  const length = nameEnd - 1 - start;
  let isExact = slot.isAscii;
  for (let index = 0; index < length && slot.isAscii; index += 1) {
    const byte = bytes[start + index]!;
    if (byte >= 0x80 || byte === BACKSLASH) return matchText(step, bytes, nameStart, nameEnd);
    const difference = byte ^ (expected[index] ?? 0);
    if (difference === 0) continue;
    // Not equal up to the bit of the case: what follows cannot change that.
    if (index >= expected.length || difference !== CASE_BIT) return undefined;
    isExact = false;
  }
  if (slot.isAscii && length !== expected.length) return undefined;
  return isExact ? step.name : matchText(step, bytes, nameStart, nameEnd);
}

function matchText(
  step: Slot["step"],
  bytes: Buffer,
  nameStart: number,
  nameEnd: number,
): string | undefined {
  const name = readString(bytes, nameStart, nameEnd);
  return matchesName(step, name) ? name : undefined;
}

// Undefined for values other than strings, and for strings with escapes, which are longer than what they mean.
function compareString(
  bytes: Buffer,
  start: number,
  end: number,
  expected: Buffer,
): boolean | undefined {
  if (start < 0 || bytes[start] !== QUOTE) return undefined;
  if (end - start - 2 > expected.length || expected.includes(BACKSLASH)) {
    for (let at = start; at < end; at += 1) if (bytes[at] === BACKSLASH) return undefined;
  }
  return equalsBytes(bytes, start + 1, end - 1, expected);
}
