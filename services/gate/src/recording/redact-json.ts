// Redaction of JSON in its own text: numbers, spaces and duplicate members stay as they are.
import { REDACTED } from "@platform/kernel/log";
import type { SecretNames } from "./secret-names.ts";

const DEPTH_MAX = 128;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** An object or array that is open. */
interface Container {
  readonly isObject: boolean;
  /** True within the value of a secret member. */
  readonly isSecret: boolean;
  /** Name of the current member; undefined before the name. */
  name: string | undefined;
}

/**
 * Replaces the texts and numbers of secret members, and of everything below them. Every occurrence of a duplicate
 * member counts, whichever one the upstream uses. `redactString` cleans the other strings. Throws a SyntaxError if the
 * text is not JSON, and an Error if it is nested too deep.
 */
export function redactJson(
  text: string,
  names: SecretNames,
  redactString: (value: string) => string,
): string {
  JSON.parse(text);
  const open: Container[] = [];
  const pieces: string[] = [];
  let copied = 0;
  const replace = (from: number, to: number, replacement: string): void => {
    pieces.push(text.slice(copied, from), replacement);
    copied = to;
  };
  for (let at = 0; at < text.length; at++) {
    const container = open.at(-1);
    const name = container?.name;
    switch (text[at]) {
      case "{":
      case "[":
        if (open.length >= DEPTH_MAX) throw new Error("nested too deep");
        open.push({
          isObject: text[at] === "{",
          isSecret: container?.isSecret === true || (name !== undefined && names.has(name)),
          name: undefined,
        });
        break;
      case "}":
      case "]":
        open.pop();
        break;
      case ",":
        if (container !== undefined) container.name = undefined;
        break;
      case '"': {
        const end = findStringEnd(text, at);
        const value = JSON.parse(text.slice(at, end)) as string;
        if (container?.isObject === true && name === undefined) container.name = value;
        else if (container?.isSecret === true || (name !== undefined && names.has(name))) {
          if (value !== "") replace(at, end, JSON.stringify(REDACTED));
        } else {
          const clean = redactString(value);
          if (clean !== value) replace(at, end, JSON.stringify(clean));
        }
        at = end - 1;
        break;
      }
      default: {
        const number = readNumber(text, at);
        if (number === "") break;
        const isSecret =
          container?.isSecret === true || (name !== undefined && names.hasNumber(name));
        if (isSecret) replace(at, at + number.length, JSON.stringify(REDACTED));
        at += number.length - 1;
      }
    }
  }
  return pieces.length === 0 ? text : `${pieces.join("")}${text.slice(copied)}`;
}

function findStringEnd(text: string, start: number): number {
  let at = start + 1;
  while (text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at + 1;
}

function readNumber(text: string, at: number): string {
  const pattern = /[-\d][-+.\deE]*/y;
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}
