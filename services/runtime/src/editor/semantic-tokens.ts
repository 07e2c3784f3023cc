// Semantic colours: tokens of TypeScript at the author's positions, and those of the words of the language.
import { findWord } from "../language/view.ts";
import { toSourceRange, type Analysis } from "./document.ts";
import type { LinePosition } from "./protocol.ts";

interface Token {
  readonly line: number;
  readonly character: number;
  readonly length: number;
  readonly type: number;
  readonly modifiers: number;
}

const NUMBERS_PER_TOKEN = 5;

/** Maps the numbers of an answer. `keyword` is the number of that kind of token, or -1. */
export function mapTokens(analysis: Analysis, data: readonly number[], keyword: number): number[] {
  const own = keyword === -1 ? [] : listWords(analysis, keyword);
  const isOwn = new Set(own.map(keyOf));
  const mapped = decode(data).flatMap((token): Token[] => {
    const { line, character, length } = token;
    const end = { line, character: character + length };
    const range = toSourceRange(analysis, { start: { line, character }, end });
    if (range === undefined || range.start.line !== range.end.line) return [];
    const found = { ...token, ...range.start, length: range.end.character - range.start.character };
    return isOwn.has(keyOf(found)) ? [] : [found];
  });
  return encode([...own, ...mapped]);
}

function keyOf({ line, character }: LinePosition): string {
  return `${line}:${character}`;
}

/** The words that begin declarations, and the names of clauses. */
function listWords({ source, lines, declarations }: Analysis, type: number): Token[] {
  return declarations
    .flatMap((declaration) => {
      const word = findWord(source, declaration);
      const clauses = declaration.kind === "route" ? declaration.clauses : [];
      return [
        word,
        ...clauses.map(({ name, nameStart }) => ({
          start: nameStart,
          end: nameStart + name.length,
        })),
      ];
    })
    .map(({ start, end }) => ({
      ...lines.toPosition(start),
      length: end - start,
      type,
      modifiers: 0,
    }));
}

function decode(data: readonly number[]): Token[] {
  const tokens: Token[] = [];
  let line = 0;
  let character = 0;
  for (let at = 0; at + NUMBERS_PER_TOKEN <= data.length; at += NUMBERS_PER_TOKEN) {
    const [lines = 0, characters = 0, length = 0, type = 0, modifiers = 0] = data.slice(at, at + 5);
    line += lines;
    character = lines === 0 ? character + characters : characters;
    tokens.push({ line, character, length, type, modifiers });
  }
  return tokens;
}

function encode(tokens: Token[]): number[] {
  tokens.sort((a, b) => a.line - b.line || a.character - b.character);
  let last: LinePosition = { line: 0, character: 0 };
  return tokens.flatMap((token) => {
    const { line, character, length, type, modifiers } = token;
    const isSameLine = line === last.line;
    const distance = isSameLine ? character - last.character : character;
    const numbers = [line - last.line, distance, length, type, modifiers];
    last = token;
    return numbers;
  });
}
