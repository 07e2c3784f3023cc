// A strict JSON scanner (RFC 8259) that records where each value is, so that bodies are changed without writing them anew.
import { isUtf8 } from "node:buffer";

/** Kinds of values. */
export const JsonKind = {
  Object: 1,
  Array: 2,
  String: 3,
  Number: 4,
  True: 5,
  False: 6,
  Null: 7,
} as const;

/** One of the values of {@link JsonKind}. */
export type JsonKindId = (typeof JsonKind)[keyof typeof JsonKind];

/** Reason why a text is refused. */
export type JsonFaultKind =
  | "encoding"
  | "syntax"
  | "depth"
  | "values"
  | "number"
  | "repeated-name"
  | "surrogate";

/** A refused text. */
export interface JsonFault {
  readonly kind: JsonFaultKind;
  /** Byte in the text. */
  readonly at: number;
}

/** Deepest nesting of objects and arrays. */
const JSON_DEPTH_MAX = 100;
/** Most values in one text, names not counted. */
const JSON_VALUES_MAX = 100_000;
const NUMBER_BYTES_MAX = 400;
/** Names of an object are compared one by one up to this number. */
const NAMES_COMPARED_MAX = 8;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const WORDS = 6;
const NODES_INITIAL = 64;

const Expect = {
  Value: 0,
  ValueOrEnd: 1,
  NameOrEnd: 2,
  Name: 3,
  Colon: 4,
  CommaOrEnd: 5,
  Nothing: 6,
} as const;

/** 1 for bytes that end the plain part of a string: quotes, backslashes and control characters. */
const STOPS = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === QUOTE || byte === BACKSLASH ? 1 : 0,
);
const IS_SPACE = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d ? 1 : 0,
);
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
/** Literals by their first byte. */
const LITERALS: ReadonlyMap<number, readonly [word: string, kind: JsonKindId]> = new Map([
  [0x74, ["true", JsonKind.True]],
  [0x66, ["false", JsonKind.False]],
  [0x6e, ["null", JsonKind.Null]],
]);

/**
 * Scans a text in one pass, which may be interrupted. Refuses what two parsers could read differently: names that an object
 * has twice, lone surrogates, bytes that are not UTF-8.
 *
 * Values are nodes in the order of the text; node 0 is the whole. The same object scans one text after the other.
 *
 *     Int32  [node][6]   kind, start, end, start of the name, end of the name (without quotes; -1 in arrays), next sibling (-1)
 */
export class JsonScanner {
  bytes: Buffer = Buffer.alloc(0);
  /** Number of values. */
  count = 0;
  /** Set if the text is refused. */
  fault: JsonFault | undefined;
  #nodes = new Int32Array(NODES_INITIAL * WORDS);
  /** Containers around the present position, and their last child. */
  readonly #open: number[] = [];
  readonly #last: number[] = [];
  readonly #members: number[] = [];
  readonly #names: (Set<string> | undefined)[] = [];
  #depth = 0;
  #at = 0;
  #end = 0;
  #expect: number = Expect.Value;
  /** Start of the string that is being scanned, -1 outside of strings. */
  #stringStart = -1;
  #nameStart = -1;
  #nameEnd = -1;
  /** A name has an escape: only then can names with different bytes be equal. */
  #hasEscapedNames = false;

  /** Begins with `bytes[start, end)`, which must not change while its nodes are used. */
  begin(bytes: Buffer, start = 0, end = bytes.length): void {
    this.bytes = bytes;
    this.count = 0;
    this.fault = undefined;
    this.#depth = 0;
    this.#at = start;
    this.#end = end;
    this.#expect = Expect.Value;
    this.#stringStart = -1;
    this.#nameStart = -1;
    this.#hasEscapedNames = false;
    this.#names.length = 0;
    if (!isUtf8(bytes.subarray(start, end))) this.#fail("encoding", start);
  }

  /** Scans `bytesMax` bytes more. True if the text is complete, or has a fault. */
  advance(bytesMax = Number.POSITIVE_INFINITY): boolean {
    const limit = Math.min(this.#end, this.#at + bytesMax);
    const { bytes } = this;
    while (this.fault === undefined && this.#at < limit) {
      if (this.#stringStart !== -1) {
        this.#scanString(limit);
        continue;
      }
      const byte = bytes[this.#at]!;
      if (IS_SPACE[byte] === 1) this.#at++;
      else this.#scanToken(byte);
    }
    if (this.fault !== undefined) return true;
    if (this.#at < this.#end) return false;
    if (this.#expect !== Expect.Nothing || this.#stringStart !== -1) this.#fail("syntax", this.#at);
    return true;
  }

  /** Scans a whole text; false if it is refused. */
  scan(bytes: Buffer, start = 0, end = bytes.length): boolean {
    this.begin(bytes, start, end);
    this.advance();
    return this.fault === undefined;
  }

  /** Kind of a node. */
  kind(node: number): JsonKindId {
    return this.#nodes[node * WORDS] as JsonKindId;
  }

  /** First byte of a node's text; that of a string is its quotation mark. */
  start(node: number): number {
    return this.#nodes[node * WORDS + 1]!;
  }

  /** Byte after a node's text. */
  end(node: number): number {
    return this.#nodes[node * WORDS + 2]!;
  }

  /** The first child, -1 without one. */
  firstChild(node: number): number {
    const child = node + 1;
    return child < this.count && this.start(child) < this.end(node) ? child : -1;
  }

  /** The next sibling, -1 without one. */
  next(node: number): number {
    return this.#nodes[node * WORDS + 5]!;
  }

  /** Name of a member; "" in arrays. */
  name(node: number): string {
    const start = this.#nodes[node * WORDS + 3]!;
    return start === -1 ? "" : this.#decode(start, this.#nodes[node * WORDS + 4]!);
  }

  /** The member of an object with this name; -1 if there is none, or `node` is no object. */
  find(node: number, name: string): number {
    if (node === -1 || this.kind(node) !== JsonKind.Object) return -1;
    for (let child = this.firstChild(node); child !== -1; child = this.next(child)) {
      if (this.#isNamed(child, name)) return child;
    }
    return -1;
  }

  /** The text of a string. */
  text(node: number): string {
    return this.#decode(this.start(node) + 1, this.end(node) - 1);
  }

  /** The value of a number. */
  number(node: number): number {
    return Number(this.bytes.toString("latin1", this.start(node), this.end(node)));
  }

  /** The members of an object or the entries of an array. */
  *children(node: number): Generator<number> {
    for (let child = this.firstChild(node); child !== -1; child = this.next(child)) yield child;
  }

  #isNamed(node: number, name: string): boolean {
    const start = this.#nodes[node * WORDS + 3]!;
    const end = this.#nodes[node * WORDS + 4]!;
    const { bytes } = this;
    if (end - start === name.length) {
      let at = 0;
      while (at < name.length && bytes[start + at] === name.charCodeAt(at)) at++;
      if (at === name.length) return true;
    }
    return this.#hasEscapedNames && end - start > name.length && this.name(node) === name;
  }

  #decode(start: number, end: number): string {
    const raw = this.bytes.toString("utf8", start, end);
    return raw.includes("\\") ? (JSON.parse(`"${raw}"`) as string) : raw;
  }

  #fail(kind: JsonFaultKind, at: number): void {
    this.fault ??= { kind, at };
  }

  #scanToken(byte: number): void {
    const expect = this.#expect;
    switch (byte) {
      case QUOTE:
        if (expect > Expect.Name) this.#fail("syntax", this.#at);
        this.#stringStart = this.#at++;
        return;
      case 0x7b:
      case 0x5b:
        this.#openContainer(byte === 0x7b ? JsonKind.Object : JsonKind.Array);
        return;
      case 0x7d:
      case 0x5d:
        this.#closeContainer(byte === 0x7d ? JsonKind.Object : JsonKind.Array);
        return;
      case 0x3a:
        if (expect !== Expect.Colon) this.#fail("syntax", this.#at);
        this.#expect = Expect.Value;
        this.#at++;
        return;
      case 0x2c:
        if (expect !== Expect.CommaOrEnd) this.#fail("syntax", this.#at);
        else this.#expect = this.#isInObject ? Expect.Name : Expect.Value;
        this.#at++;
        return;
      default:
        if (expect > Expect.ValueOrEnd) this.#fail("syntax", this.#at);
        else this.#scanScalar(byte);
    }
  }

  get #isInObject(): boolean {
    return this.#depth > 0 && this.kind(this.#open[this.#depth - 1]!) === JsonKind.Object;
  }

  #scanScalar(byte: number): void {
    const start = this.#at;
    const isNumber = byte === 0x2d || (byte >= 0x30 && byte <= 0x39);
    if (!isNumber) {
      this.#scanLiteral(byte);
      return;
    }
    let end = start + 1;
    const limit = Math.min(this.#end, start + NUMBER_BYTES_MAX + 1);
    while (end < limit && isNumberByte(this.bytes[end]!)) end++;
    if (end - start > NUMBER_BYTES_MAX) this.#fail("number", start);
    else if (!NUMBER.test(this.bytes.toString("latin1", start, end))) this.#fail("syntax", start);
    else this.#addScalar(JsonKind.Number, start, end);
  }

  #scanLiteral(byte: number): void {
    const start = this.#at;
    const literal = LITERALS.get(byte);
    const [word = "", kind = JsonKind.Null] = literal ?? [];
    const end = start + word.length;
    let at = start;
    while (at < end && this.bytes[at] === word.charCodeAt(at - start)) at++;
    if (literal === undefined || at < end || end > this.#end) this.#fail("syntax", start);
    else this.#addScalar(kind, start, end);
  }

  #addScalar(kind: JsonKindId, start: number, end: number): void {
    this.#add(kind, start, end);
    this.#at = end;
    this.#expect = this.#depth === 0 ? Expect.Nothing : Expect.CommaOrEnd;
  }

  #openContainer(kind: JsonKindId): void {
    if (this.#expect > Expect.ValueOrEnd) this.#fail("syntax", this.#at);
    else if (this.#depth === JSON_DEPTH_MAX) this.#fail("depth", this.#at);
    if (this.fault !== undefined) return;
    const node = this.#add(kind, this.#at, this.#end);
    this.#open[this.#depth] = node;
    this.#last[this.#depth] = -1;
    this.#members[this.#depth] = 0;
    this.#names[this.#depth] = undefined;
    this.#depth++;
    this.#at++;
    this.#expect = kind === JsonKind.Object ? Expect.NameOrEnd : Expect.ValueOrEnd;
  }

  #closeContainer(kind: JsonKindId): void {
    const expect = this.#expect;
    const mayEnd =
      expect === Expect.CommaOrEnd ||
      (expect === Expect.NameOrEnd && kind === JsonKind.Object) ||
      (expect === Expect.ValueOrEnd && kind === JsonKind.Array);
    const node = this.#depth === 0 ? -1 : this.#open[this.#depth - 1]!;
    if (!mayEnd || node === -1 || this.kind(node) !== kind) {
      this.#fail("syntax", this.#at);
      return;
    }
    this.#depth--;
    this.#at++;
    this.#nodes[node * WORDS + 2] = this.#at;
    this.#expect = this.#depth === 0 ? Expect.Nothing : Expect.CommaOrEnd;
  }

  #scanString(limit: number): void {
    const { bytes } = this;
    let at = this.#at;
    while (at < limit && STOPS[bytes[at]!] === 0) at++;
    this.#at = at;
    if (at >= limit) return;
    if (bytes[at] === BACKSLASH) {
      this.#scanEscape(at);
      return;
    }
    if (bytes[at] !== QUOTE) {
      this.#fail("syntax", at);
      return;
    }
    const start = this.#stringStart;
    this.#stringStart = -1;
    this.#at = at + 1;
    if (this.#expect === Expect.Name || this.#expect === Expect.NameOrEnd) {
      this.#nameStart = start + 1;
      this.#nameEnd = at;
      this.#expect = Expect.Colon;
    } else this.#addScalar(JsonKind.String, start, at + 1);
  }

  #scanEscape(at: number): void {
    if (this.#expect === Expect.Name || this.#expect === Expect.NameOrEnd)
      this.#hasEscapedNames = true;
    switch (this.bytes[at + 1]) {
      case QUOTE:
      case BACKSLASH:
      case 0x2f:
      case 0x62:
      case 0x66:
      case 0x6e:
      case 0x72:
      case 0x74:
        this.#at = at + 2;
        if (this.#at > this.#end) this.#fail("syntax", at);
        return;
      case 0x75:
        this.#scanUnit(at);
        return;
      default:
        this.#fail("syntax", at);
    }
  }

  // A `\u` escape, or two of them that are a surrogate pair.
  #scanUnit(at: number): void {
    const unit = this.#readUnit(at);
    if (unit === -1) {
      this.#fail("syntax", at);
      return;
    }
    this.#at = at + 6;
    if (unit < 0xd800 || unit > 0xdfff) return;
    const low = unit < 0xdc00 ? this.#readUnit(at + 6) : -1;
    if (low < 0xdc00 || low > 0xdfff) this.#fail("surrogate", at);
    else this.#at = at + 12;
  }

  #readUnit(at: number): number {
    const { bytes } = this;
    if (at + 6 > this.#end || bytes[at] !== BACKSLASH || bytes[at + 1] !== 0x75) return -1;
    const digits = bytes.toString("latin1", at + 2, at + 6);
    return /^[0-9a-fA-F]{4}$/.test(digits) ? Number.parseInt(digits, 16) : -1;
  }

  #add(kind: JsonKindId, start: number, end: number): number {
    const node = this.count;
    if (node === JSON_VALUES_MAX) {
      this.#fail("values", start);
      return node - 1;
    }
    if ((node + 1) * WORDS > this.#nodes.length) {
      const larger = new Int32Array(this.#nodes.length * 2);
      larger.set(this.#nodes);
      this.#nodes = larger;
    }
    const nodes = this.#nodes;
    const at = node * WORDS;
    nodes[at] = kind;
    nodes[at + 1] = start;
    nodes[at + 2] = end;
    nodes[at + 3] = this.#nameStart;
    nodes[at + 4] = this.#nameEnd;
    nodes[at + 5] = -1;
    this.count++;
    if (this.#depth > 0) this.#link(node);
    this.#nameStart = -1;
    return node;
  }

  #link(node: number): void {
    const level = this.#depth - 1;
    if (this.#nameStart !== -1 && this.#repeatsName(node, level))
      this.#fail("repeated-name", this.#nameStart);
    const last = this.#last[level]!;
    if (last !== -1) this.#nodes[last * WORDS + 5] = node;
    this.#last[level] = node;
    this.#members[level]!++;
  }

  #repeatsName(node: number, level: number): boolean {
    const members = this.#members[level]!;
    if (members === 0) return false;
    const first = this.#open[level]! + 1;
    if (members <= NAMES_COMPARED_MAX) {
      for (let other = first; other !== -1; other = this.next(other)) {
        if (this.#hasSameName(node, other)) return true;
      }
      return false;
    }
    let names = this.#names[level];
    if (names === undefined) {
      names = new Set();
      for (let other = first; other !== -1; other = this.next(other)) names.add(this.name(other));
      this.#names[level] = names;
    }
    const name = this.name(node);
    if (names.has(name)) return true;
    names.add(name);
    return false;
  }

  #hasSameName(one: number, other: number): boolean {
    const nodes = this.#nodes;
    const oneStart = nodes[one * WORDS + 3]!;
    const otherStart = nodes[other * WORDS + 3]!;
    const size = nodes[one * WORDS + 4]! - oneStart;
    const { bytes } = this;
    if (size === nodes[other * WORDS + 4]! - otherStart) {
      let at = 0;
      while (at < size && bytes[oneStart + at] === bytes[otherStart + at]) at++;
      if (at === size) return true;
    }
    return this.#hasEscapedNames && this.name(one) === this.name(other);
  }
}

function isNumberByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    byte === 0x2e ||
    byte === 0x2d ||
    byte === 0x2b ||
    byte === 0x65 ||
    byte === 0x45
  );
}

/** Describes a fault for the client. */
export function describeJsonFault({ kind, at }: JsonFault): string {
  switch (kind) {
    case "encoding":
      return "it is not UTF-8";
    case "syntax":
      return `syntax error at byte ${at}`;
    case "depth":
      return `nested more than ${JSON_DEPTH_MAX} deep at byte ${at}`;
    case "values":
      return `more than ${JSON_VALUES_MAX} values`;
    case "number":
      return `number with more than ${NUMBER_BYTES_MAX} characters at byte ${at}`;
    case "repeated-name":
      return `a name is repeated in an object at byte ${at}`;
    case "surrogate":
      return `unpaired surrogate at byte ${at}`;
    default:
      return kind satisfies never;
  }
}
