// Records of JSON: one value per line, or any values one after another.
import type { Getter } from "../language/evaluator.ts";
import type { ColumnReference, PathStep, SourceStep } from "../language/syntax.ts";
import type { Value } from "../language/value.ts";
import { ByteQueue } from "./byte-queue.ts";
import { equalsBytes, isAscii, readInteger } from "./byte-values.ts";
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

const LINE_FEED = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const CASE_BIT = 0x20;
const OPEN_OBJECT = 0x7b;

/** A member of the row that the question needs. */
interface Slot {
  readonly step: Extract<PathStep, { kind: "name" }>;
  /** The name, in UTF-8. */
  readonly bytes: Buffer;
  readonly isAscii: boolean;
  found: string | undefined;
  readonly span: Span;
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
  readonly #row: Span = { start: -1, end: -1 };
  #bytes: Buffer = Buffer.alloc(0);
  #endOffset = Infinity;
  /** The row whose members the slots hold. */
  #isIndexed = false;

  constructor({ isLines, source }: JsonReaderOptions) {
    this.#walker = isLines && source.length === 0 ? undefined : new JsonWalker(this.#queue, source);
  }

  feed(bytes: Buffer): void {
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
    const row = this.#row;
    if (this.#walker === undefined) {
      if (!this.#nextLine()) return false;
    } else if (!this.#walker.next(row, this.#endOffset)) return false;
    this.#bytes = this.#queue.bytes;
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
    this.#isIndexed = true;
    const slots = this.#slots;
    for (const slot of slots) {
      slot.found = undefined;
      slot.span.start = -1;
    }
    return visitMembers(bytes, start, end, (nameStart, nameEnd, valueStart, valueEnd) => {
      for (let index = 0; index < slots.length; index += 1) {
        const slot = slots[index]!;
        const name = matchName(slot, bytes, nameStart, nameEnd);
        if (name === undefined) continue;
        requireUnambiguous(slot.found, name);
        slot.found = name;
        slot.span.start = valueStart;
        slot.span.end = valueEnd;
      }
    });
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
