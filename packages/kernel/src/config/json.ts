// A strict JSON parser (RFC 8259) that records the position of each key and value.

const BYTES_MAX = 16 * 1024 * 1024;
const DEPTH_MAX = 64;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
// RFC 8259 section 7: strings must not contain unescaped control characters.
// oxlint-disable-next-line no-control-regex
const PLAIN_TEXT = /[^"\\\u0000-\u001f]*/y;
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

/** A position in a text. Both numbers start at 1; columns count UTF-16 units. */
export interface Position {
  line: number;
  column: number;
}

/** Path from the document's root to a value. */
export type JsonPath = readonly (string | number)[];

/** Limits of the parser. */
export interface JsonLimits {
  /** Maximum length in UTF-16 units; default 16 Mi. */
  textMax?: number;
  /** Maximum nesting depth; default 64. */
  depthMax?: number;
}

/** A parsed document. */
export interface JsonDocument {
  /** The value, consisting of plain objects and arrays; no object has a key `__proto__`. */
  value: unknown;
  /** Returns the start of the value at a path, or undefined. */
  locateValue(path: JsonPath): Position | undefined;
  /** Returns the start of the key of an object member, or undefined. */
  locateKey(path: JsonPath): Position | undefined;
}

/** Invalid JSON, or a text that exceeds a limit. `message` does not contain the position. */
export class JsonSyntaxError extends Error {
  readonly position: Position;

  constructor(message: string, position: Position) {
    super(message);
    this.name = "JsonSyntaxError";
    this.position = position;
  }
}

/**
 * Parses a JSON text. Also rejects duplicate keys, the key `__proto__`, numbers that overflow, and texts beyond the
 * limits. Skips a byte order mark. Throws JsonSyntaxError.
 */
export function parseJson(text: string, limits: JsonLimits = {}): JsonDocument {
  const reader = new JsonReader(text, limits.depthMax ?? DEPTH_MAX);
  const textMax = limits.textMax ?? BYTES_MAX;
  if (text.length > textMax) {
    throw new JsonSyntaxError(
      `the document has ${text.length} characters, more than the ${textMax} allowed`,
      { line: 1, column: 1 },
    );
  }
  const value = reader.readDocument();
  const { spots } = reader;
  const lines = findLineStarts(text);
  return {
    value,
    locateValue: (path) => toPosition(lines, findSpot(spots, path)?.valueAt),
    locateKey: (path) => toPosition(lines, findSpot(spots, path)?.keyAt),
  };
}

// The positions of a value, structured like the document.
interface Spot {
  keyAt?: number;
  valueAt: number;
  members?: Map<string, Spot>;
  items?: Spot[];
}

class JsonReader {
  readonly text: string;
  readonly depthMax: number;
  readonly spots: Spot = { valueAt: 0 };
  at = 0;

  constructor(text: string, depthMax: number) {
    this.text = text;
    this.depthMax = depthMax;
  }

  readDocument(): unknown {
    if (this.text.charCodeAt(0) === 0xfeff) this.at = 1;
    const value = this.readValue(this.spots, 0);
    this.skipSpace();
    if (this.at < this.text.length) this.fail("expected the end of the document");
    return value;
  }

  readValue(spot: Spot, depth: number): unknown {
    this.skipSpace();
    spot.valueAt = this.at;
    switch (this.text[this.at]) {
      case "{":
        return this.readObject(spot, depth + 1);
      case "[":
        return this.readArray(spot, depth + 1);
      case '"':
        return this.readText();
      case "t":
        return this.readWord("true", true);
      case "f":
        return this.readWord("false", false);
      case "n":
        return this.readWord("null", null);
      default:
        return this.readNumber();
    }
  }

  readObject(spot: Spot, depth: number): Record<string, unknown> {
    this.enter(depth);
    const value: Record<string, unknown> = {};
    const members = new Map<string, Spot>();
    spot.members = members;
    this.skipSpace();
    if (this.consume("}")) return value;
    for (;;) {
      this.skipSpace();
      const keyAt = this.at;
      if (this.text[keyAt] !== '"') this.fail("expected a key in double quotes");
      const key = this.readText();
      if (members.has(key)) this.fail(`duplicate key ${JSON.stringify(key)}`, keyAt);
      if (key === "__proto__") this.fail('the key "__proto__" is not allowed', keyAt);
      this.skipSpace();
      if (!this.consume(":")) this.fail(`expected ":" after the key ${JSON.stringify(key)}`);
      const member: Spot = { keyAt, valueAt: 0 };
      members.set(key, member);
      value[key] = this.readValue(member, depth);
      this.skipSpace();
      if (this.consume("}")) return value;
      const commaAt = this.at;
      if (!this.consume(",")) this.fail('expected "," or "}"');
      this.skipSpace();
      if (this.text[this.at] === "}") this.fail('no "," is allowed before "}"', commaAt);
    }
  }

  readArray(spot: Spot, depth: number): unknown[] {
    this.enter(depth);
    const value: unknown[] = [];
    const items: Spot[] = [];
    spot.items = items;
    this.skipSpace();
    if (this.consume("]")) return value;
    for (;;) {
      const item: Spot = { valueAt: 0 };
      items.push(item);
      value.push(this.readValue(item, depth));
      this.skipSpace();
      if (this.consume("]")) return value;
      const commaAt = this.at;
      if (!this.consume(",")) this.fail('expected "," or "]"');
      this.skipSpace();
      if (this.text[this.at] === "]") this.fail('no "," is allowed before "]"', commaAt);
    }
  }

  readText(): string {
    const openedAt = this.at;
    let value = "";
    this.at += 1;
    for (;;) {
      PLAIN_TEXT.lastIndex = this.at;
      PLAIN_TEXT.test(this.text);
      value += this.text.slice(this.at, PLAIN_TEXT.lastIndex);
      this.at = PLAIN_TEXT.lastIndex;
      const next = this.text[this.at];
      if (next === '"') {
        this.at += 1;
        return value;
      }
      if (next === undefined) this.fail("unterminated string", openedAt);
      if (next !== "\\")
        this.fail("line breaks and control characters in strings must be escaped (\\n, \\u0000 …)");
      value += this.readEscape();
    }
  }

  readEscape(): string {
    const letter = this.text[this.at + 1] ?? "";
    const plain = ESCAPES[letter];
    if (plain !== undefined) {
      this.at += 2;
      return plain;
    }
    const digits = this.text.slice(this.at + 2, this.at + 6);
    if (letter !== "u" || !/^[0-9a-fA-F]{4}$/.test(digits)) this.fail("unknown escape sequence");
    this.at += 6;
    return String.fromCharCode(Number.parseInt(digits, 16));
  }

  readNumber(): number {
    NUMBER.lastIndex = this.at;
    if (!NUMBER.test(this.text)) {
      this.fail(this.at < this.text.length ? "expected a value" : "unexpected end of the document");
    }
    const value = Number(this.text.slice(this.at, NUMBER.lastIndex));
    if (!Number.isFinite(value)) this.fail("the number is too large");
    this.at = NUMBER.lastIndex;
    return value;
  }

  readWord<Value>(word: string, value: Value): Value {
    if (!this.text.startsWith(word, this.at)) this.fail("expected a value");
    this.at += word.length;
    return value;
  }

  enter(depth: number): void {
    if (depth > this.depthMax) this.fail(`nested deeper than ${this.depthMax} levels`);
    this.at += 1;
  }

  consume(character: string): boolean {
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  skipSpace(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.at += 1;
    }
  }

  fail(message: string, at: number = this.at): never {
    throw new JsonSyntaxError(message, toPosition(findLineStarts(this.text), at)!);
  }
}

function findSpot(root: Spot, path: JsonPath): Spot | undefined {
  let spot: Spot | undefined = root;
  for (const step of path) {
    spot = typeof step === "number" ? spot?.items?.[step] : spot?.members?.get(step);
  }
  return spot;
}

function findLineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

function toPosition(lineStarts: readonly number[], at: number | undefined): Position | undefined {
  if (at === undefined) return undefined;
  let low = 0;
  let high = lineStarts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (lineStarts[middle]! <= at) low = middle;
    else high = middle - 1;
  }
  return { line: low + 1, column: at - lineStarts[low]! + 1 };
}
