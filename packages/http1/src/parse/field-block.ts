// The field section of a head, or a trailer section: an incremental scanner with a view of the result.
import { COLON, CR, LF, SP, TAB, TOKEN, VALUE } from "./bytes.ts";
import {
  ALIAS,
  KNOWN_COUNT,
  Known,
  type KnownField,
  findAliasedField,
  findKnownField,
  nameOfKnownField,
} from "./known-fields.ts";
import { type Refusal, refusals } from "./refusals.ts";
import { Parse, type ParseStatus } from "./status.ts";

const LINE = 0;
const NAME = 1;
const SPACE = 2;
const CONTENT = 3;
const CONTENT_LF = 4;
const END_LF = 5;

const FIRST_CAPACITY = 24;
const NONE = -1;
const NO_BYTES = Buffer.alloc(0);

// The table: the number of the first line of each known name, counted from 1; then five integers per line.
const LINES_AT = KNOWN_COUNT;
const STRIDE = 5;
const NAME_END = 1;
const VALUE_START = 2;
const VALUE_END = 3;
const KIND = 4;
// A kind: the known name with its alias bit, a bit for lines nominated by Connection, and the number of the next line with
// the same name.
const KNOWN_BITS = 0xff & ~ALIAS;
const NOMINATED = 0x100;
const NEXT_SHIFT = 16;

/**
 * One field section. It allocates nothing per message: names and values are ranges of `bytes` in one `Int32Array`, and
 * strings are created only on demand.
 *
 * ```text
 *   Host:  example.org \r\n
 *   ^   ^  ^          ^
 *   |   |  |          valueEnd       a line extends from its nameStart to the nameStart of the next,
 *   |   |  valueStart                the last one to `end`, the position of the section's closing CRLF
 *   |   nameEnd
 *   nameStart
 * ```
 *
 * All ranges are valid until the owner of `bytes` reuses them or the block is reset.
 */
export class FieldBlock {
  /** The buffer of all ranges. */
  bytes: Buffer = NO_BYTES;
  /** Number of field lines. */
  count = 0;
  /** Start of the first field line. */
  start = 0;
  /** Start of the closing CRLF when complete. */
  end = 0;
  /** Position at which scanning stopped: after the closing CRLF when complete. */
  at = 0;
  /** Reason for the refusal, if any. */
  refusal: Refusal | null = null;
  /** True if a name is an alias of a known one (`X_Forwarded_For`); see `isAlias`. */
  hasAlias = false;

  readonly fieldsMax: number;
  private state = LINE;
  private nameKinds = 0;
  /** Number of lines whose name has been read; one more than `count` if a line is refused after its name. */
  private named = 0;
  private table: Int32Array;

  constructor(fieldsMax: number) {
    this.fieldsMax = fieldsMax;
    this.table = new Int32Array(LINES_AT + Math.min(fieldsMax, FIRST_CAPACITY) * STRIDE);
  }

  /** Resets the block for a section that starts at `start`. */
  begin(start: number): void {
    const { table } = this;
    const end = LINES_AT + this.named * STRIDE;
    for (let line = LINES_AT; line < end; line += STRIDE)
      table[table[line + KIND]! & KNOWN_BITS] = 0;
    this.named = 0;
    this.count = 0;
    this.start = start;
    this.end = start;
    this.at = start;
    this.state = LINE;
    this.refusal = null;
    this.hasAlias = false;
  }

  /** Continues scanning in `bytes[from, end)`; `at` is the position at which it stopped. */
  execute(bytes: Buffer, from: number, end: number): ParseStatus {
    this.bytes = bytes;
    // Imports are live bindings and fields can change; locals stay in registers.
    const tokens = TOKEN;
    const values = VALUE;
    let { state, table } = this;
    let line = LINES_AT + this.count * STRIDE;
    let at = from;
    for (;;) {
      if (state === LINE) {
        if (at === end) break;
        if (bytes[at] === CR) {
          this.end = at++;
          state = END_LF;
        } else {
          if (this.count === this.fieldsMax) return this.refuse(refusals.too_many_fields);
          if (line === table.length) table = this.grow();
          table[line] = at;
          this.nameKinds = 0;
          state = NAME;
        }
      }
      if (state === NAME) {
        let kinds = this.nameKinds;
        for (; at < end; at++) {
          const kind = tokens[bytes[at]!]!;
          if (kind === 0) break;
          kinds |= kind;
        }
        this.nameKinds = kinds;
        if (at === end) break;
        const nameStart = table[line]!;
        if (bytes[at] !== COLON || at === nameStart) {
          return this.refuseName(bytes[at]!, at, nameStart);
        }
        table[line + NAME_END] = at;
        this.recordName(table, line, bytes, nameStart, at);
        at++;
        state = SPACE;
      }
      if (state === SPACE) {
        while (at < end && (bytes[at] === SP || bytes[at] === TAB)) at++;
        if (at === end) break;
        table[line + VALUE_START] = at;
        state = CONTENT;
      }
      if (state === CONTENT) {
        while (at < end && values[bytes[at]!] !== 0) at++;
        if (at === end) break;
        if (bytes[at] !== CR) {
          return this.refuse(bytes[at] === LF ? refusals.bare_lf : refusals.bad_field_value);
        }
        const valueStart = table[line + VALUE_START]!;
        let last = at;
        while (last > valueStart && (bytes[last - 1] === SP || bytes[last - 1] === TAB)) last--;
        table[line + VALUE_END] = last;
        at++;
        state = CONTENT_LF;
      }
      if (at === end) break;
      if (bytes[at] !== LF) return this.refuse(refusals.bare_cr);
      at++;
      if (state === END_LF) {
        this.at = at;
        this.state = LINE;
        return Parse.Complete;
      }
      this.count++;
      line += STRIDE;
      state = LINE;
    }
    this.at = at;
    this.state = state;
    return Parse.NeedsMore;
  }

  /** Shifts all ranges by `delta` bytes after the bytes were moved to another buffer. */
  rebase(bytes: Buffer, delta: number): void {
    this.bytes = bytes;
    if (delta === 0) return;
    this.start += delta;
    this.end += delta;
    this.at += delta;
    const { table } = this;
    const end = Math.min(LINES_AT + (this.count + 1) * STRIDE, table.length);
    for (let line = LINES_AT; line < end; line += STRIDE) {
      for (let part = 0; part < KIND; part++) table[line + part]! += delta;
    }
  }

  /** Index of the first line with this name, -1 if absent. Does not find aliases. */
  first(known: KnownField): number {
    return this.table[known]! - 1;
  }

  /** Index of the next line with the same known name as line `index`, -1 if absent. */
  next(index: number): number {
    return (this.kindAt(index) >> NEXT_SHIFT) - 1;
  }

  /** True if a line with this name is present. */
  has(known: KnownField): boolean {
    return this.table[known]! !== 0;
  }

  /** The known name of line `index`; `Known.Other` if unknown. An alias has the real field's name. */
  knownAt(index: number): KnownField {
    return (this.kindAt(index) & KNOWN_BITS) as KnownField;
  }

  /** True if line `index` spells a known name with `_` for `-`. */
  isAlias(index: number): boolean {
    return (this.kindAt(index) & ALIAS) !== 0;
  }

  /** True if the Connection field nominates line `index`: a forwarder removes it (RFC 9110 §7.6.1). */
  isNominated(index: number): boolean {
    return (this.kindAt(index) & NOMINATED) !== 0;
  }

  /** Marks line `index` as nominated by Connection. */
  nominate(index: number): void {
    this.table[LINES_AT + index * STRIDE + KIND]! |= NOMINATED;
  }

  nameStart(index: number): number {
    return this.table[LINES_AT + index * STRIDE]!;
  }

  nameEnd(index: number): number {
    return this.table[LINES_AT + index * STRIDE + NAME_END]!;
  }

  valueStart(index: number): number {
    return this.table[LINES_AT + index * STRIDE + VALUE_START]!;
  }

  valueEnd(index: number): number {
    return this.table[LINES_AT + index * STRIDE + VALUE_END]!;
  }

  /** End of line `index`, after its CRLF. */
  lineEnd(index: number): number {
    return index + 1 < this.count ? this.nameStart(index + 1) : this.end;
  }

  /** The name of line `index` as sent. */
  name(index: number): string {
    return this.bytes.toString("latin1", this.nameStart(index), this.nameEnd(index));
  }

  /** The value of line `index` without surrounding whitespace, as latin1. */
  value(index: number): string {
    return this.bytes.toString("latin1", this.valueStart(index), this.valueEnd(index));
  }

  /**
   * The field's value, several lines joined by `, ` (Cookie: `; `) as RFC 9110 §5.3 allows;
   * `undefined` if absent. Set-Cookie cannot be joined: read its lines one by one.
   */
  get(known: KnownField): string | undefined {
    let index = this.first(known);
    if (index === NONE) return undefined;
    let joined = this.value(index);
    const separator = known === Known.Cookie ? "; " : ", ";
    for (index = this.next(index); index !== NONE; index = this.next(index)) {
      joined += separator + this.value(index);
    }
    return joined;
  }

  /** The joined value of any name, case-insensitive; `undefined` if absent. For cold paths. */
  find(name: string): string | undefined {
    const wanted = name.toLowerCase();
    let joined: string | undefined;
    for (let index = 0; index < this.count; index++) {
      if (this.nameEnd(index) - this.nameStart(index) !== wanted.length) continue;
      if (this.name(index).toLowerCase() !== wanted) continue;
      const value = this.value(index);
      joined = joined === undefined ? value : joined + (wanted === "cookie" ? "; " : ", ") + value;
    }
    return joined;
  }

  /** True if the name of line `index` equals this lower-case ASCII text, ignoring case. */
  nameIs(index: number, lowerCase: string): boolean {
    return equalsIgnoringCase(this.bytes, this.nameStart(index), this.nameEnd(index), lowerCase);
  }

  /** True if the value of line `index` equals this lower-case ASCII text, ignoring case. */
  valueIs(index: number, lowerCase: string): boolean {
    return equalsIgnoringCase(this.bytes, this.valueStart(index), this.valueEnd(index), lowerCase);
  }

  /** All lines as lower-case name and value, in order; known names are shared strings. */
  *lowerEntries(): Generator<[name: string, value: string]> {
    for (let index = 0; index < this.count; index++) {
      const known = this.isAlias(index) ? Known.Other : this.knownAt(index);
      const name = known === Known.Other ? this.name(index).toLowerCase() : nameOfKnownField(known);
      yield [name, this.value(index)];
    }
  }

  /** All lines as name and value, in order. For tests, logs and cold paths. */
  *entries(): Generator<[name: string, value: string]> {
    for (let index = 0; index < this.count; index++) yield [this.name(index), this.value(index)];
  }

  private kindAt(index: number): number {
    return this.table[LINES_AT + index * STRIDE + KIND]!;
  }

  private recordName(
    table: Int32Array,
    line: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    const hasUnderscore = (this.nameKinds & 2) !== 0;
    const id = hasUnderscore
      ? findAliasedField(bytes, start, end)
      : findKnownField(bytes, start, end);
    table[line + KIND] = id;
    const number = ++this.named;
    if (id === 0) return;
    if (id > ALIAS) {
      this.hasAlias = true;
      return;
    }
    const first = table[id]!;
    if (first === 0) {
      table[id] = number;
      return;
    }
    let last = first - 1;
    for (let next = this.next(last); next !== NONE; next = this.next(last)) last = next;
    table[LINES_AT + last * STRIDE + KIND]! |= number << NEXT_SHIFT;
  }

  private refuse(refusal: Refusal): ParseStatus {
    this.refusal = refusal;
    return Parse.Refused;
  }

  private refuseName(byte: number, at: number, nameStart: number): ParseStatus {
    if (byte === LF) return this.refuse(refusals.bare_lf);
    if (byte === SP || byte === TAB) {
      if (at > nameStart) return this.refuse(refusals.space_before_colon);
      return this.refuse(this.count === 0 ? refusals.leading_whitespace : refusals.obs_fold);
    }
    return this.refuse(refusals.bad_field_name);
  }

  private grow(): Int32Array {
    const lines = (this.table.length - LINES_AT) / STRIDE;
    const grown = new Int32Array(LINES_AT + Math.min(this.fieldsMax, lines * 2) * STRIDE);
    grown.set(this.table);
    this.table = grown;
    return grown;
  }
}

/** True if `bytes[start, end)` equals this lower-case ASCII text, ignoring case. */
export function equalsIgnoringCase(
  bytes: Uint8Array,
  start: number,
  end: number,
  lowerCase: string,
): boolean {
  if (end - start !== lowerCase.length) return false;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    const lower = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
    if (lower !== lowerCase.charCodeAt(at - start)) return false;
  }
  return true;
}
