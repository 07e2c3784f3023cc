// Records of CSV, read as offsets of their fields.
import type { CsvInput } from "../request.ts";
import type { Getter } from "../language/evaluator.ts";
import { SelectError } from "../language/fault.ts";
import type { ColumnReference, PathStep } from "../language/syntax.ts";
import type { Value } from "../language/value.ts";
import { ByteQueue } from "./byte-queue.ts";
import { equalsBytes, readInteger } from "./byte-values.ts";
import { countQuotes, hasPairs, scanCsv } from "./csv-kernel.ts";
import {
  matchesName,
  readPosition,
  requireRecordSize,
  type RowFields,
  type StreamReader,
} from "./row-reader.ts";
import { POSITION_MASK, type ScanAhead } from "./scan-ahead.ts";

const CARRIAGE_RETURN = 0x0d;
/** Kinds of fields: as it stands, or with escapes that must be removed. */
const PLAIN = 0;
const ESCAPED = 1;

/** Marks of the bytes that end a run of ordinary ones. */
const SPECIAL = 1;

/** The outcome of the scan of a record. */
type Scan = "record" | "incomplete" | "none";

export class CsvReader implements StreamReader {
  readonly isText = true;
  readonly #options: CsvInput;
  readonly #queue = new ByteQueue();
  readonly #field: Buffer;
  readonly #record: Buffer;
  readonly #quote: number;
  readonly #escape: number;
  readonly #comment: Buffer;
  /** Length of the longer delimiter. */
  readonly #longest: number;
  /** Outside of quotes, and inside. */
  readonly #special = new Uint8Array(256);
  readonly #specialInQuotes = new Uint8Array(256);
  /** Only for delimiters of one byte. */
  readonly #ahead: ScanAhead | undefined;
  // The current record, if it was found by a scan ahead.
  #isAhead = false;
  #start = 0;
  #lastEnd = 0;
  // The fields of the current record otherwise.
  #starts = new Int32Array(64);
  #ends = new Int32Array(64);
  #kinds = new Uint8Array(64);
  #count = 0;
  #bytes: Buffer = Buffer.alloc(0);
  #names: readonly string[] | undefined;
  #hasHeader: boolean;
  #endOffset = Infinity;
  #positions: string[] = [];

  constructor(options: CsvInput) {
    this.#options = options;
    this.#field = Buffer.from(options.fieldDelimiter);
    this.#record = Buffer.from(options.recordDelimiter);
    this.#comment = Buffer.from(options.comments);
    this.#longest = Math.max(this.#field.length, this.#record.length);
    this.#quote = options.quoteCharacter === "" ? -1 : options.quoteCharacter.charCodeAt(0);
    this.#escape = options.quoteEscapeCharacter.charCodeAt(0);
    this.#ahead = this.#scanAhead();
    this.#special[this.#field[0]!] = SPECIAL;
    this.#special[this.#record[0]!] = SPECIAL;
    if (this.#quote >= 0) this.#specialInQuotes[this.#quote] = SPECIAL;
    this.#specialInQuotes[this.#escape] = SPECIAL;
    if (!options.allowsQuotedRecordDelimiter) this.#specialInQuotes[this.#record[0]!] = SPECIAL;
    this.#hasHeader = options.header !== "NONE";
  }

  #scanAhead(): ScanAhead | undefined {
    const comment = this.#comment;
    const bytes = { field: this.#field[0]!, record: this.#record[0]!, quote: this.#quote };
    const areDistinct = new Set(Object.values(bytes)).size === 3;
    if (this.#longest > 1 || !areDistinct) return undefined;
    return scanCsv({
      ...bytes,
      comment: comment.length === 1 ? comment[0]! : -1,
      carriageReturn: this.#endsLines ? CARRIAGE_RETURN : -1,
      // A line may begin like a longer comment.
      readsQuotes: this.#escape === this.#quote && comment.length <= 1,
      quotesRecords: this.#options.allowsQuotedRecordDelimiter,
    });
  }

  get isReady(): boolean {
    if (this.#hasHeader) this.#readHeader();
    return !this.#hasHeader || this.#queue.isEnded;
  }

  feed(bytes: Buffer): void {
    this.#ahead?.reset();
    this.#queue.feed(bytes);
  }

  end(): void {
    this.#queue.isEnded = true;
  }

  stopAfter(offset: number): void {
    this.#endOffset = offset;
  }

  get isStopped(): boolean {
    return this.#queue.offset >= this.#endOffset;
  }

  next(): boolean {
    if (this.#hasHeader) {
      this.#readHeader();
      if (this.#hasHeader) return false;
    }
    return !this.isStopped && this.#readRecord();
  }

  bindValue(path: readonly PathStep[], column: ColumnReference): Getter {
    const index = this.#findColumn(path, column);
    return () => (index < this.#count ? this.#readField(index) : undefined);
  }

  bindInteger(path: readonly PathStep[], column: ColumnReference): () => number | undefined {
    const index = this.#findColumn(path, column);
    return () => {
      if (index >= this.#count || !this.#isPlain(index)) return undefined;
      return readInteger(this.#bytes, this.#startOf(index), this.#endOf(index));
    };
  }

  bindEquals(
    path: readonly PathStep[],
    column: ColumnReference,
    text: string,
  ): () => boolean | undefined {
    const index = this.#findColumn(path, column);
    const expected = Buffer.from(text);
    return () => {
      if (index >= this.#count || !this.#isPlain(index)) return undefined;
      return equalsBytes(this.#bytes, this.#startOf(index), this.#endOf(index), expected);
    };
  }

  bindCell(path: readonly PathStep[], column: ColumnReference): Getter {
    return this.bindValue(path, column);
  }

  bindFields(): () => RowFields {
    return () => this.#readFields();
  }

  #readFields(): RowFields {
    const cells: Value[] = [];
    for (let index = 0; index < this.#count; index += 1) cells.push(this.#readField(index));
    return { names: this.#nameFields(), cells };
  }

  readObjectText(): undefined {
    return undefined;
  }

  /** Takes the names of the columns from another part of the object. */
  useHeader(names: readonly string[] | undefined): void {
    this.#hasHeader = false;
    this.#names = names;
  }

  /** The names in the first record; `undefined` if it has not been read. */
  get header(): readonly string[] | undefined {
    return this.#names;
  }

  // The longest run of names so far is kept: most records have the same number of fields.
  #nameFields(): readonly string[] {
    const count = this.#count;
    if (this.#positions.length !== count) {
      this.#positions = Array.from(
        { length: count },
        (_, index) => this.#names?.[index] ?? `_${index + 1}`,
      );
    }
    return this.#positions;
  }

  #findColumn(path: readonly PathStep[], column: ColumnReference): number {
    const [step, ...rest] = path;
    if (step?.kind !== "name" || rest.length > 0) {
      throw new SelectError("InvalidKeyPath", "Fields of CSV have no parts.", column.place);
    }
    const named = (this.#names ?? []).flatMap((name, index) =>
      matchesName(step, name) ? [index] : [],
    );
    if (named.length > 1) {
      throw new SelectError("AmbiguousFieldName", undefined, column.place);
    }
    const index = named[0] ?? readPosition(step.name);
    if (index !== undefined) return index;
    // An empty object has no header, and no rows either.
    if (this.#hasHeader) return 0;
    throw new SelectError(
      "EvaluatorBindingDoesNotExist",
      `There is no column ${JSON.stringify(step.name.slice(0, 100))}.`,
      column.place,
    );
  }

  #readHeader(): void {
    if (!this.#readRecord()) return;
    this.#hasHeader = false;
    if (this.#options.header !== "USE") return;
    const names: string[] = [];
    for (let index = 0; index < this.#count; index += 1) names.push(this.#readField(index));
    this.#names = names;
  }

  #readField(index: number): string {
    const text = this.#bytes.toString("utf8", this.#startOf(index), this.#endOf(index));
    if (this.#isPlain(index)) return text;
    const escape = String.fromCharCode(this.#escape);
    let clean = "";
    for (let at = 0; ;) {
      const found = text.indexOf(escape, at);
      if (found < 0) return clean + text.slice(at);
      clean += text.slice(at, found) + text.slice(found + 1, found + 2);
      at = found + 2;
    }
  }

  #isPlain(index: number): boolean {
    return this.#isAhead ? !hasPairs(this.#markOf(index)) : this.#kinds[index] === PLAIN;
  }

  #markOf(index: number): number {
    return this.#ahead!.words[this.#ahead!.first + index]!;
  }

  #startOf(index: number): number {
    if (!this.#isAhead) return this.#starts[index]!;
    const quotes = countQuotes(this.#markOf(index));
    if (index === 0) return this.#start + quotes;
    return this.#ahead!.base + (this.#markOf(index - 1) & POSITION_MASK) + 1 + quotes;
  }

  #endOf(index: number): number {
    if (!this.#isAhead) return this.#ends[index]!;
    const mark = this.#markOf(index);
    const end =
      index === this.#count - 1 ? this.#lastEnd : this.#ahead!.base + (mark & POSITION_MASK);
    return end - countQuotes(mark);
  }

  #readRecord(): boolean {
    const queue = this.#queue;
    for (;;) {
      if (this.#readAhead()) return true;
      this.#bytes = queue.bytes;
      const start = queue.at;
      if (start === queue.bytes.length) return false;
      const scan = this.#scanComment() ?? this.#scanRecord(start);
      if (scan === "incomplete") {
        requireRecordSize(queue.length - this.#record.length);
        return false;
      }
      if (scan === "record") {
        requireRecordSize(queue.at - start - this.#record.length);
        return true;
      }
    }
  }

  // Takes the next record from a scan ahead; false if its bytes must be looked at one by one.
  #readAhead(): boolean {
    const ahead = this.#ahead;
    const queue = this.#queue;
    this.#bytes = queue.bytes;
    while (ahead?.next(queue.bytes, queue.at) === true) {
      const { base, words, first, behind } = ahead;
      const start = queue.at;
      const end = base + (words[behind - 1]! & POSITION_MASK);
      queue.skipTo(end + 1);
      this.#count = behind - first;
      const lastStart = this.#count === 1 ? start : base + (words[behind - 2]! & POSITION_MASK) + 1;
      const hasReturn =
        end > lastStart && this.#bytes[end - 1] === CARRIAGE_RETURN && this.#endsLines;
      this.#start = start;
      this.#lastEnd = hasReturn ? end - 1 : end;
      const isEmpty = this.#count === 1 && this.#lastEnd === start;
      if (!isEmpty && !this.#isComment(start)) return (this.#isAhead = true);
    }
    return (this.#isAhead = false);
  }

  #isComment(at: number): boolean {
    const comment = this.#comment;
    const bytes = this.#bytes;
    if (comment.length === 0 || bytes[at] !== comment[0]) return false;
    return comment.length === 1 || bytes.subarray(at, at + comment.length).equals(comment);
  }

  // Comments and empty lines are no records.
  #scanComment(): Scan | undefined {
    const { bytes, at, isEnded } = this.#queue;
    if (!this.#isComment(at)) return undefined;
    const end = bytes.indexOf(this.#record, at);
    if (end < 0 && !isEnded) return "incomplete";
    this.#queue.skipTo(end < 0 ? bytes.length : end + this.#record.length);
    return "none";
  }

  #scanRecord(start: number): Scan {
    return this.#longest === 1 ? this.#scanSimple(start) : this.#scanGeneral(start);
  }

  // Delimiters of one byte, the usual case: nothing is called for fields without quotes.
  #scanSimple(start: number): Scan {
    const queue = this.#queue;
    const bytes = this.#bytes;
    const special = this.#special;
    const end = bytes.length;
    const quote = this.#quote;
    const field = this.#field[0]!;
    let starts = this.#starts;
    let ends = this.#ends;
    let count = 0;
    for (let fieldStart = start, at = start; ;) {
      if (bytes[at] === quote) {
        this.#count = count;
        at = this.#scanQuoted(at);
        if (at < 0) return "incomplete";
        count += 1;
      } else {
        while (at < end && special[bytes[at]!] === 0) at += 1;
        if (at === end && !queue.isEnded) return "incomplete";
        if (count === starts.length) this.#growFields();
        starts = this.#starts;
        ends = this.#ends;
        starts[count] = fieldStart;
        ends[count] = at;
        this.#kinds[count] = PLAIN;
        count += 1;
      }
      if (at === end || bytes[at] !== field) {
        this.#count = count;
        queue.skipTo(Math.min(at + 1, end));
        return this.#endRecord(start);
      }
      at += 1;
      fieldStart = at;
    }
  }

  #scanGeneral(start: number): Scan {
    const queue = this.#queue;
    const bytes = this.#bytes;
    const special = this.#special;
    const end = bytes.length;
    const quote = this.#quote;
    this.#count = 0;
    let fieldStart = start;
    let at = start;
    for (;;) {
      if (bytes[at] === quote) {
        at = this.#scanQuoted(at);
        if (at < 0) return "incomplete";
      } else {
        while (at < end && special[bytes[at]!] === 0) at += 1;
        while (at < end && !this.#isDelimiter(at)) {
          at += 1;
          while (at < end && special[bytes[at]!] === 0) at += 1;
        }
        // A delimiter may go on in the next bytes.
        if (!queue.isEnded && at + this.#longest > end) return "incomplete";
        this.#addField(fieldStart, at, PLAIN);
      }
      if (at === end) {
        if (!queue.isEnded) return "incomplete";
        queue.skipTo(end);
        return this.#endRecord(start);
      }
      if (!matchesAt(bytes, at, this.#field)) {
        queue.skipTo(at + this.#record.length);
        return this.#endRecord(start);
      }
      at += this.#field.length;
      fieldStart = at;
      if (at === end && !queue.isEnded) return "incomplete";
    }
  }

  #isDelimiter(at: number): boolean {
    const bytes = this.#bytes;
    return matchesAt(bytes, at, this.#field) || matchesAt(bytes, at, this.#record);
  }

  // The position behind the closing quote; -1 if it has not come yet.
  #scanQuoted(open: number): number {
    const bytes = this.#bytes;
    const end = bytes.length;
    const special = this.#specialInQuotes;
    const { isEnded } = this.#queue;
    let kind = PLAIN;
    let at = open + 1;
    for (; at < end; at += 1) {
      const byte = bytes[at]!;
      if (special[byte] === 0) continue;
      if (byte === this.#escape && (byte !== this.#quote || bytes[at + 1] === this.#quote)) {
        kind = ESCAPED;
        at += 1;
      } else if (byte === this.#quote) {
        break;
      } else if (byte === this.#record[0] && matchesAt(bytes, at, this.#record)) {
        throw new SelectError("CSVEscapingRecordDelimiter");
      }
    }
    // The quote may be the first of two, and CR LF may follow it.
    if (at + this.#longest + 1 >= end && !isEnded) return -1;
    if (at >= end) throw new SelectError("CSVUnescapedQuote", "A quote does not end.");
    this.#addField(open + 1, at, kind);
    at += 1;
    if (bytes[at] === CARRIAGE_RETURN && this.#endsLines && bytes[at + 1] === this.#record[0])
      at += 1;
    if (at < end && !this.#isDelimiter(at)) throw new SelectError("CSVUnescapedQuote");
    return at;
  }

  get #endsLines(): boolean {
    return this.#options.recordDelimiter === "\n";
  }

  #addField(start: number, end: number, kind: number): void {
    const index = this.#count;
    if (index === this.#starts.length) this.#growFields();
    this.#starts[index] = start;
    this.#ends[index] = end;
    this.#kinds[index] = kind;
    this.#count = index + 1;
  }

  #growFields(): void {
    const length = this.#starts.length * 4;
    const grow = <Numbers extends Int32Array | Uint8Array>(from: Numbers, to: Numbers): Numbers => {
      to.set(from);
      return to;
    };
    this.#starts = grow(this.#starts, new Int32Array(length));
    this.#ends = grow(this.#ends, new Int32Array(length));
    this.#kinds = grow(this.#kinds, new Uint8Array(length));
  }

  // Lines may end in CR LF; empty lines are no records.
  #endRecord(start: number): Scan {
    const last = this.#count - 1;
    const lastEnd = this.#ends[last]!;
    const hasReturn =
      this.#endsLines &&
      lastEnd > this.#starts[last]! &&
      this.#bytes[lastEnd - 1] === CARRIAGE_RETURN &&
      this.#bytes[this.#starts[last]! - 1] !== this.#quote;
    if (hasReturn) this.#ends[last] = lastEnd - 1;
    const isEmpty = last === 0 && this.#starts[0] === start && this.#ends[0] === start;
    return isEmpty ? "none" : "record";
  }
}

function matchesAt(bytes: Buffer, at: number, delimiter: Buffer): boolean {
  if (bytes[at] !== delimiter[0]) return false;
  for (let index = 1; index < delimiter.length; index += 1) {
    if (bytes[at + index] !== delimiter[index]) return false;
  }
  return true;
}
