// Walks along the steps of FROM through JSON that is larger than memory: only the rows at the end of the path are held.
//
//   root values ─► step ─► step ─► row        a value that a step does not fit is one row that is MISSING
import type { SourceStep } from "../language/syntax.ts";
import type { ByteQueue } from "./byte-queue.ts";
import { malformed, skipKey, skipSpace, skipString, skipValue } from "./json-scan.ts";
import { readString, type Span } from "./json-value.ts";
import { matchesName, requireRecordSize } from "./row-reader.ts";

const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** An open list or object of the path. */
interface Level {
  readonly isObject: boolean;
  readonly step: SourceStep;
  /** Elements or members so far. */
  count: number;
  /** True if the step has selected a part of it. */
  hasMatched: boolean;
}

/** The state between two calls. */
type Expected = "value" | "separator" | "skip";

export class JsonWalker {
  readonly #queue: ByteQueue;
  readonly #steps: readonly SourceStep[];
  readonly #levels: Level[] = [];
  readonly #skipper = new ValueSkipper();
  #expected: Expected = "value";

  constructor(queue: ByteQueue, steps: readonly SourceStep[]) {
    this.#queue = queue;
    this.#steps = steps;
  }

  /** True between the values of the object. */
  get isAtRoot(): boolean {
    return this.#levels.length === 0 && this.#expected !== "skip";
  }

  /**
   * Finds the next row; its start is -1 if it is MISSING. False if more bytes are needed or there are no more rows. Values of
   * the object that begin at `endOffset` or later are left.
   */
  next(row: Span, endOffset: number): boolean {
    for (;;) {
      const queue = this.#queue;
      // White space may end a value that is skipped.
      if (this.#expected !== "skip") {
        queue.skipTo(skipSpace(queue.bytes, queue.at, queue.bytes.length));
      }
      if (queue.length === 0) {
        if (queue.isEnded) this.#requireEnd();
        return false;
      }
      if (queue.offset >= endOffset && this.isAtRoot) return false;
      const found = this.#advance(row);
      if (found !== undefined) return found;
    }
  }

  #requireEnd(): void {
    const isOpen = this.#expected === "skip" && !this.#skipper.isAtEnd;
    if (isOpen || this.#levels.length > 0) throw malformed("an unexpected end");
  }

  // True with a row, false if more bytes are needed, `undefined` after a step of the walk.
  #advance(row: Span): boolean | undefined {
    switch (this.#expected) {
      case "skip":
        if (!this.#skipper.skip(this.#queue)) return false;
        this.#expected = "separator";
        return undefined;
      case "separator":
        return this.#passSeparator(row);
      case "value":
        return this.#enterValue(row);
      default:
        return this.#expected satisfies never;
    }
  }

  // A value, whose path is matched up to here.
  #enterValue(row: Span): boolean | undefined {
    const queue = this.#queue;
    const { bytes, at } = queue;
    const step = this.#steps[this.#levels.length];
    if (step === undefined) return this.#takeRow(row);
    const isObject = bytes[at] === OPEN_OBJECT;
    const wantsObject = step.kind === "name" || step.kind === "members";
    if ((isObject && wantsObject) || (bytes[at] === OPEN_LIST && !wantsObject)) {
      queue.skipTo(at + 1);
      this.#levels.push({ isObject, step, count: 0, hasMatched: false });
      this.#expected = "separator";
      return undefined;
    }
    this.#skipper.begin();
    this.#expected = "skip";
    row.start = -1;
    return true;
  }

  #takeRow(row: Span): boolean {
    const queue = this.#queue;
    const { bytes, at } = queue;
    const end = skipValue(bytes, at, bytes.length, queue.isEnded);
    requireRecordSize((end < 0 ? bytes.length : end) - at);
    if (end < 0) return false;
    row.start = at;
    row.end = end;
    queue.skipTo(end);
    this.#expected = "separator";
    return true;
  }

  // After a value, or after the opening of a list or an object.
  #passSeparator(row: Span): boolean | undefined {
    const level = this.#levels.at(-1);
    if (level === undefined) {
      this.#expected = "value";
      return undefined;
    }
    const queue = this.#queue;
    const { bytes } = queue;
    let { at } = queue;
    if (bytes[at] === (level.isObject ? CLOSE_OBJECT : CLOSE_LIST)) {
      queue.skipTo(at + 1);
      this.#levels.pop();
      if (level.hasMatched) return undefined;
      row.start = -1;
      return true;
    }
    if (level.count > 0) {
      if (bytes[at] !== COMMA) throw malformed("no comma between values");
      at = skipSpace(bytes, at + 1, bytes.length);
      if (at === bytes.length) return this.#wait();
    }
    if (level.isObject) {
      const valueAt = skipKey(bytes, at, bytes.length);
      if (valueAt < 0) return this.#wait();
      const name = readString(bytes, at, skipString(bytes, at, bytes.length));
      this.#enterPart(level, name);
      queue.skipTo(valueAt);
    } else {
      this.#enterPart(level, level.count);
      queue.skipTo(at);
    }
    level.count += 1;
    return undefined;
  }

  #enterPart(level: Level, part: string | number): void {
    const isWanted =
      isSelected(level.step, part) && !(level.step.kind === "name" && level.hasMatched);
    if (isWanted) {
      level.hasMatched = true;
      this.#expected = "value";
      return;
    }
    this.#skipper.begin();
    this.#expected = "skip";
  }

  #wait(): false {
    if (this.#queue.isEnded) throw malformed("an unexpected end");
    requireRecordSize(this.#queue.length - 1);
    return false;
  }
}

function isSelected(step: SourceStep, part: string | number): boolean {
  switch (step.kind) {
    case "members":
    case "elements":
      return true;
    case "index":
      return step.index === part;
    case "name":
      return typeof part === "string" && matchesName(step, part);
    default:
      return step satisfies never;
  }
}

/** Passes a value of any size, byte by byte. It checks strings and brackets only. */
class ValueSkipper {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #hasStarted = false;

  begin(): void {
    this.#depth = 0;
    this.#isInString = false;
    this.#isEscaped = false;
    this.#hasStarted = false;
  }

  /** True if nothing is missing, should the bytes end here: numbers and words have no end of their own. */
  get isAtEnd(): boolean {
    return this.#depth === 0 && this.#hasStarted && !this.#isInString;
  }

  /** Passes bytes up to the end of the value; false if it has not come yet. */
  skip(queue: ByteQueue): boolean {
    const { bytes } = queue;
    let { at } = queue;
    for (; at < bytes.length; at += 1) {
      const byte = bytes[at]!;
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) {
          this.#isInString = false;
          if (this.#depth === 0) return this.#end(queue, at + 1);
        }
        continue;
      }
      const isClosing = byte === CLOSE_OBJECT || byte === CLOSE_LIST;
      const isEnd = isClosing || byte === COMMA || (byte <= 0x20 && this.#hasStarted);
      if (this.#depth === 0 && isEnd) {
        if (!this.#hasStarted) throw malformed("a value is missing");
        return this.#end(queue, at);
      }
      if (byte === QUOTE) this.#isInString = true;
      else if (byte === OPEN_OBJECT || byte === OPEN_LIST) this.#depth += 1;
      else if (isClosing) {
        this.#depth -= 1;
        if (this.#depth === 0) return this.#end(queue, at + 1);
      }
      this.#hasStarted = true;
    }
    queue.skipTo(at);
    return false;
  }

  #end(queue: ByteQueue, at: number): true {
    queue.skipTo(at);
    return true;
  }
}
