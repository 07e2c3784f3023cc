// The field section of a head or a trailer section: an incremental scanner and the view of what it found.
import { COLON, CR, LF, SP, TAB, TOKEN, VALUE } from "./bytes.ts";
import { ALIAS, findAliasedField, findKnownField, KNOWN_COUNT, Known } from "./known-fields.ts";
import type { KnownField } from "./known-fields.ts";
import { refusals } from "./refusals.ts";
import type { Refusal } from "./refusals.ts";
import { Parse } from "./status.ts";
import type { ParseStatus } from "./status.ts";

const LINE = 0;
const NAME = 1;
const SPACE = 2;
const CONTENT = 3;
const CONTENT_LF = 4;
const END_LF = 5;

const STRIDE = 4;
const FIRST_CAPACITY = 24;
const NONE = -1;
const NO_BYTES = Buffer.alloc(0);
const NOMINATED = 1;

/**
 * One field section. Nothing is allocated per message: names and values are ranges of `bytes` in an
 * `Int32Array`, and strings come into being only when they are asked for.
 *
 * ```text
 *   Host:  example.org \r\n
 *   ^   ^  ^          ^
 *   |   |  |          valueEnd       a line reaches from its nameStart to the nameStart of the next,
 *   |   |  valueStart                the last one to `end`, where the section's closing CRLF stands
 *   |   nameEnd
 *   nameStart
 * ```
 *
 * All ranges are valid until the owner of `bytes` reuses them or the block is reset.
 */
export class FieldBlock {
  /** What all ranges refer to. */
  bytes: Buffer = NO_BYTES;
  /** How many field lines there are. */
  count = 0;
  /** Where the first field line starts. */
  start = 0;
  /** Where the closing CRLF starts, once complete. */
  end = 0;
  /** Where scanning stopped: behind the closing CRLF once complete. */
  at = 0;
  /** Why the section was refused. */
  refusal: Refusal | null = null;
  /** Whether a name was an alias of a known one (`X_Forwarded_For`); see `isAlias`. */
  hasAlias = false;

  private readonly fieldsMax: number;
  private state = LINE;
  private nameKinds = 0;
  private ranges: Int32Array;
  private ids: Uint8Array;
  private flags: Uint8Array;
  private following: Int16Array;
  private readonly firsts = new Int16Array(KNOWN_COUNT).fill(NONE);

  constructor(fieldsMax: number) {
    const capacity = Math.min(fieldsMax, FIRST_CAPACITY);
    this.fieldsMax = fieldsMax;
    this.ranges = new Int32Array(capacity * STRIDE);
    this.ids = new Uint8Array(capacity);
    this.flags = new Uint8Array(capacity);
    this.following = new Int16Array(capacity);
  }

  /** Forgets the last section; the next one starts at `start`. */
  begin(start: number): void {
    const { ids, firsts } = this;
    for (let index = 0; index < this.count; index++) firsts[ids[index]! & ~ALIAS] = NONE;
    this.count = 0;
    this.start = start;
    this.end = start;
    this.at = start;
    this.state = LINE;
    this.refusal = null;
    this.hasAlias = false;
  }

  /** Scans on through `bytes[from, end)`; `at` says where it stopped. */
  execute(bytes: Buffer, from: number, end: number): ParseStatus {
    this.bytes = bytes;
    // Imports are live bindings and fields may change: as locals they stay in registers.
    const tokens = TOKEN;
    const values = VALUE;
    let { state, ranges } = this;
    let base = this.count * STRIDE;
    let at = from;
    for (;;) {
      if (state === LINE) {
        if (at === end) break;
        if (bytes[at] === CR) {
          this.end = at++;
          state = END_LF;
        } else {
          if (this.count === this.fieldsMax) return this.refuse(refusals.too_many_fields);
          if (base === ranges.length) ranges = this.growRanges();
          ranges[base] = at;
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
        const nameStart = ranges[base]!;
        if (bytes[at] !== COLON || at === nameStart) {
          return this.refuseName(bytes[at]!, at, nameStart);
        }
        ranges[base + 1] = at;
        this.recordName(bytes, nameStart, at);
        at++;
        state = SPACE;
      }
      if (state === SPACE) {
        while (at < end && (bytes[at] === SP || bytes[at] === TAB)) at++;
        if (at === end) break;
        ranges[base + 2] = at;
        state = CONTENT;
      }
      if (state === CONTENT) {
        while (at < end && values[bytes[at]!] !== 0) at++;
        if (at === end) break;
        if (bytes[at] !== CR) {
          return this.refuse(bytes[at] === LF ? refusals.bare_lf : refusals.bad_field_value);
        }
        const valueStart = ranges[base + 2]!;
        let last = at;
        while (last > valueStart && (bytes[last - 1] === SP || bytes[last - 1] === TAB)) last--;
        ranges[base + 3] = last;
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
      base += STRIDE;
      state = LINE;
    }
    this.at = at;
    this.state = state;
    return Parse.NeedsMore;
  }

  /** Moves every range by `delta` bytes: the owner moved the bytes to another buffer. */
  rebase(bytes: Buffer, delta: number): void {
    this.bytes = bytes;
    this.start += delta;
    this.end += delta;
    this.at += delta;
    const used = Math.min((this.count + 1) * STRIDE, this.ranges.length);
    for (let index = 0; index < used; index++) this.ranges[index]! += delta;
  }

  /** Index of the first line with this name, -1 if there is none. Aliases are not found here. */
  first(known: KnownField): number {
    return this.firsts[known]!;
  }

  /** Index of the next line with the same known name as line `index`, -1 if there is none. */
  next(index: number): number {
    return this.following[index]!;
  }

  /** Whether a line with this name is present. */
  has(known: KnownField): boolean {
    return this.firsts[known]! !== NONE;
  }

  /** The known name of line `index`; `Known.Other` if unknown. An alias has the real field's name. */
  knownAt(index: number): KnownField {
    return (this.ids[index]! & ~ALIAS) as KnownField;
  }

  /** Whether line `index` spells a known name with `_` for `-`. */
  isAlias(index: number): boolean {
    return (this.ids[index]! & ALIAS) !== 0;
  }

  /** Whether the Connection field nominates line `index`: a forwarder cuts it (RFC 9110 §7.6.1). */
  isNominated(index: number): boolean {
    return (this.flags[index]! & NOMINATED) !== 0;
  }

  /** Marks line `index` as nominated by Connection. */
  nominate(index: number): void {
    this.flags[index]! |= NOMINATED;
  }

  nameStart(index: number): number {
    return this.ranges[index * STRIDE]!;
  }

  nameEnd(index: number): number {
    return this.ranges[index * STRIDE + 1]!;
  }

  valueStart(index: number): number {
    return this.ranges[index * STRIDE + 2]!;
  }

  valueEnd(index: number): number {
    return this.ranges[index * STRIDE + 3]!;
  }

  /** Where line `index` ends, behind its CRLF. */
  lineEnd(index: number): number {
    return index + 1 < this.count ? this.ranges[(index + 1) * STRIDE]! : this.end;
  }

  /** The name of line `index` as it was sent. */
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
    let index = this.firsts[known]!;
    if (index === NONE) return undefined;
    let joined = this.value(index);
    const separator = known === Known.Cookie ? "; " : ", ";
    for (index = this.next(index); index !== NONE; index = this.next(index)) {
      joined += separator + this.value(index);
    }
    return joined;
  }

  /** The joined value of any name, found without regard to case; `undefined` if absent. For cold paths. */
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

  /** Whether the name of line `index` is this lower-case ASCII text, without regard to case. */
  nameIs(index: number, lowerCase: string): boolean {
    return equalsIgnoringCase(this.bytes, this.nameStart(index), this.nameEnd(index), lowerCase);
  }

  /** Whether the value of line `index` is this lower-case ASCII text, without regard to case. */
  valueIs(index: number, lowerCase: string): boolean {
    return equalsIgnoringCase(this.bytes, this.valueStart(index), this.valueEnd(index), lowerCase);
  }

  /** All lines as name and value, in order. For tests, logs and cold paths. */
  *entries(): Generator<[name: string, value: string]> {
    for (let index = 0; index < this.count; index++) yield [this.name(index), this.value(index)];
  }

  private recordName(bytes: Buffer, start: number, end: number): void {
    const index = this.count;
    const hasUnderscore = (this.nameKinds & 2) !== 0;
    const id = hasUnderscore
      ? findAliasedField(bytes, start, end)
      : findKnownField(bytes, start, end);
    this.ids[index] = id;
    this.flags[index] = 0;
    this.following[index] = NONE;
    if (id === 0) return;
    if (id > ALIAS) {
      this.hasAlias = true;
      return;
    }
    const first = this.firsts[id]!;
    if (first === NONE) {
      this.firsts[id] = index;
      return;
    }
    let last = first;
    while (this.following[last]! !== NONE) last = this.following[last]!;
    this.following[last] = index;
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

  private growRanges(): Int32Array {
    const capacity = Math.min(this.fieldsMax, this.ids.length * 2);
    const { ranges, ids, flags, following } = this;
    this.ranges = new Int32Array(capacity * STRIDE);
    this.ids = new Uint8Array(capacity);
    this.flags = new Uint8Array(capacity);
    this.following = new Int16Array(capacity);
    this.ranges.set(ranges);
    this.ids.set(ids);
    this.flags.set(flags);
    this.following.set(following);
    return this.ranges;
  }
}

/** Whether `bytes[start, end)` is this lower-case ASCII text, without regard to case. */
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
