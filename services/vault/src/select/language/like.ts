// LIKE: `%` matches any characters, `_` one character. Matching takes time in the product of both lengths at most.
import { SelectError } from "./fault.ts";

/** Any number of characters, or exactly one. */
const ANY = -1;
const ONE = -2;

/** Compiles a pattern. Throws LikeInvalidInputs or EvaluatorLikePatternInvalidEscapeSequence. */
export function compileLike(pattern: string, escape?: string): (text: string) => boolean {
  const tokens = readPattern(pattern, escape);
  const plain = readPlain(tokens);
  if (plain !== undefined) return plain;
  return (text) => matchTokens(tokens, text);
}

function readPattern(pattern: string, escape: string | undefined): number[] {
  const escapes = escape === undefined ? [] : Array.from(escape);
  if (escape !== undefined && escapes.length !== 1) {
    throw new SelectError("LikeInvalidInputs", "ESCAPE must be one character.");
  }
  const tokens: number[] = [];
  const characters = Array.from(pattern);
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at]!;
    if (character === escapes[0]) {
      at += 1;
      const escaped = characters[at];
      if (escaped !== "%" && escaped !== "_" && escaped !== escapes[0]) {
        throw new SelectError("EvaluatorLikePatternInvalidEscapeSequence");
      }
      tokens.push(escaped.codePointAt(0)!);
    } else if (character === "%") {
      if (tokens.at(-1) !== ANY) tokens.push(ANY);
    } else {
      tokens.push(character === "_" ? ONE : character.codePointAt(0)!);
    }
  }
  return tokens;
}

// Patterns without `_` and with `%` only at their ends are searches that the engine is fast at.
function readPlain(tokens: readonly number[]): ((text: string) => boolean) | undefined {
  const startsOpen = tokens[0] === ANY;
  const endsOpen = tokens.length > 1 && tokens.at(-1) === ANY;
  const inner = tokens.slice(startsOpen ? 1 : 0, endsOpen ? -1 : undefined);
  if (inner.some((token) => token < 0)) return undefined;
  const text = inner.map((token) => String.fromCodePoint(token)).join("");
  if (tokens.length === 1 && startsOpen) return () => true;
  if (startsOpen && endsOpen) return (value) => value.includes(text);
  if (startsOpen) return (value) => value.endsWith(text);
  if (endsOpen) return (value) => value.startsWith(text);
  return (value) => value === text;
}

// After a mismatch, only the last `%` has to take one character more: what came before it matched as early as possible.
function matchTokens(tokens: readonly number[], text: string): boolean {
  let token = 0;
  let at = 0;
  let retryToken = -1;
  let retryAt = 0;
  while (at < text.length) {
    const expected = tokens[token];
    const point = text.codePointAt(at)!;
    const width = point > 0xffff ? 2 : 1;
    if (expected === ANY) {
      token += 1;
      retryToken = token;
      retryAt = at;
    } else if (expected === ONE || expected === point) {
      token += 1;
      at += width;
    } else if (retryToken >= 0) {
      retryAt += text.codePointAt(retryAt)! > 0xffff ? 2 : 1;
      token = retryToken;
      at = retryAt;
    } else {
      return false;
    }
  }
  while (tokens[token] === ANY) token += 1;
  return token === tokens.length;
}
