// The first fault of a JSON text (RFC 8259), in the words of the page: browsers describe it in English, each in its way.
import { t } from "../words/words.ts";
import type { EditorProblem } from "./editor-text.ts";

/** A fault and its offset in the text. */
interface JsonFault {
  offset: number;
  message: string;
}

/** Deeper than any document that a service accepts. */
const DEPTH_MAX = 1_000;
const SPACE = /[ \t\n\r]*/y;
const SCALAR = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;
// RFC 8259 section 7: strings must not contain unescaped control characters.
// oxlint-disable-next-line no-control-regex
const PLAIN = /(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y;

/** Value of a JSON text, or the problem for which it has none. */
export type ReadJson =
  | { value: unknown; problem?: undefined }
  | { value?: undefined; problem: EditorProblem };

/** Parses JSON, and says where it fails. */
export function readJson(text: string): ReadJson {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    const { offset, message } = findJsonFault(text) ?? { offset: 0, message: String(error) };
    const before = text.slice(0, offset).split("\n");
    return { problem: { line: before.length, column: before.at(-1)!.length + 1, message } };
  }
}

/** Finds the first fault; undefined if there is none. */
export function findJsonFault(text: string): JsonFault | undefined {
  try {
    const end = new Scanner(text).scanValue(0, 0);
    const rest = skip(SPACE, text, end);
    return rest === text.length
      ? undefined
      : { offset: rest, message: t("Nothing may follow the value") };
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}

class Fault extends Error implements JsonFault {
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

/** Methods return the offset after what they have read. */
class Scanner {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  scanValue(from: number, depth: number): number {
    const at = skip(SPACE, this.#text, from);
    if (depth > DEPTH_MAX) throw new Fault(at, t("Nested too deeply"));
    const first = this.#text[at];
    if (first === '"') return this.#scanString(at);
    if (first === "{") return this.#scanMembers(at, "}", depth);
    if (first === "[") return this.#scanMembers(at, "]", depth);
    const end = skip(SCALAR, this.#text, at);
    if (end === at) throw this.#expect(at, t("A value is expected"));
    return end;
  }

  #scanMembers(from: number, close: "}" | "]", depth: number): number {
    let at = skip(SPACE, this.#text, from + 1);
    if (this.#text[at] === close) return at + 1;
    for (;;) {
      if (close === "}") {
        if (this.#text[at] !== '"') {
          throw this.#expect(at, t("A name in double quotes is expected"));
        }
        at = skip(SPACE, this.#text, this.#scanString(at));
        if (this.#text[at] !== ":") throw this.#expect(at, t("A colon is expected"));
        at += 1;
      }
      at = skip(SPACE, this.#text, this.scanValue(at, depth + 1));
      if (this.#text[at] === close) return at + 1;
      if (this.#text[at] !== ",")
        throw this.#expect(at, t("A comma or {end} is expected", { end: close }));
      const comma = at;
      at = skip(SPACE, this.#text, at + 1);
      if (this.#text[at] === close) {
        throw new Fault(comma, t("No comma is allowed before {end}", { end: close }));
      }
    }
  }

  #scanString(from: number): number {
    const at = skip(PLAIN, this.#text, from + 1);
    const next = this.#text[at];
    if (next === '"') return at + 1;
    if (next === undefined) throw new Fault(from, t("The closing quote is missing"));
    throw new Fault(
      at,
      next === "\\"
        ? t("Unknown escape sequence")
        : t("Line breaks and control characters in a text are escaped, such as \\n"),
    );
  }

  #expect(at: number, message: string): Fault {
    return new Fault(at, at < this.#text.length ? message : t("The text ends too early"));
  }
}

function skip(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
}
