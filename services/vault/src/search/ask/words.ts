// Words of a question, and patterns over them.

/** A word: in lower case and as it was written. Quoted texts are one word. */
export interface Word {
  readonly text: string;
  readonly written: string;
  readonly isQuoted: boolean;
}

const QUOTES: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  "“": "”",
  "‘": "’",
  "«": "»",
};
const BLANK = /\s/u;
/** Signs around words that mean nothing. A colon or an equals sign stands alone. */
const EDGE = new Set("?!,;()[]{}".split(""));

/** Splits a question into its words. */
function splitWords(question: string): Word[] {
  const words: Word[] = [];
  const characters = Array.from(question.normalize("NFC"));
  for (let at = 0; at < characters.length;) {
    const first = characters[at]!;
    const close = QUOTES[first];
    const end = close === undefined ? -1 : characters.indexOf(close, at + 1);
    if (end > at) {
      const written = characters.slice(at + 1, end).join("");
      words.push({ text: written.toLowerCase(), written, isQuoted: true });
      at = end + 1;
      continue;
    }
    if (BLANK.test(first) || EDGE.has(first)) {
      at += 1;
      continue;
    }
    let stop = at + 1;
    while (
      stop < characters.length &&
      !BLANK.test(characters[stop]!) &&
      !EDGE.has(characters[stop]!)
    ) {
      if (characters[stop] === "=" || characters[at] === "=") break;
      stop += 1;
    }
    words.push(...splitEnd(characters.slice(at, stop).join("")));
    at = stop;
  }
  return words;
}

// A colon or a full stop at the end of a word is not a part of it; "file's" is "file".
function splitEnd(written: string): Word[] {
  const isMark = written.length > 1 && written.endsWith(":");
  const bare = isMark ? written.slice(0, -1) : written.length > 1 ? trimEnd(written) : written;
  const word = (text: string): Word => ({
    text: text.toLowerCase(),
    written: text,
    isQuoted: false,
  });
  return isMark ? [word(bare), word(":")] : [word(bare)];
}

function trimEnd(text: string): string {
  if (/['’]s$/u.test(text)) return text.slice(0, -2);
  return text.endsWith(".") ? text.slice(0, -1) : text;
}

/** Reads a value at a position. Returns it with the number of its words; undefined if there is none. */
export type ValueReader = (
  words: readonly (Word | undefined)[],
  at: number,
) => { value: string | number; length: number } | undefined;

/** The values of a match, by the names of their readers; a second one has `2` after its name. */
export type Values = Readonly<Record<string, string | number>>;

/** The words of a question, of which those that a pattern matches are used up. */
export class WordList {
  readonly #words: (Word | undefined)[];
  readonly #readers: Readonly<Record<string, ValueReader>>;

  constructor(question: string, readers: Readonly<Record<string, ValueReader>>) {
    this.#words = splitWords(question);
    this.#readers = readers;
  }

  /** Words that are not used, in their order. */
  get rest(): Word[] {
    return this.#words.filter((word) => word !== undefined);
  }

  /**
   * Uses up the first match of a pattern and returns its values: alternatives `a|b`, optional words `the?`, values `$size`.
   */
  take(pattern: string): Values | undefined {
    const parts = pattern.split(" ");
    for (let start = 0; start < this.#words.length; start += 1) {
      const values: Record<string, string | number> = {};
      const end = this.#match(parts, 0, start, values);
      if (end === undefined) continue;
      this.#words.fill(undefined, start, end);
      return values;
    }
    return undefined;
  }

  /** As `take`, with the first of several patterns that matches. */
  takeAny(patterns: readonly string[]): Values | undefined {
    for (const pattern of patterns) {
      const values = this.take(pattern);
      if (values !== undefined) return values;
    }
    return undefined;
  }

  #match(
    parts: readonly string[],
    part: number,
    at: number,
    values: Record<string, string | number>,
  ): number | undefined {
    const wanted = parts[part];
    if (wanted === undefined) return at;
    if (wanted.startsWith("$")) return this.#matchValue(wanted.slice(1), parts, part, at, values);
    const isOptional = wanted.endsWith("?");
    const alternatives = (isOptional ? wanted.slice(0, -1) : wanted).split("|");
    const word = this.#words[at];
    if (word !== undefined && !word.isQuoted && alternatives.includes(word.text)) {
      const end = this.#match(parts, part + 1, at + 1, values);
      if (end !== undefined) return end;
    }
    return isOptional ? this.#match(parts, part + 1, at, values) : undefined;
  }

  #matchValue(
    name: string,
    parts: readonly string[],
    part: number,
    at: number,
    values: Record<string, string | number>,
  ): number | undefined {
    const found = this.#readers[name]!(this.#words, at);
    if (found === undefined) return undefined;
    const end = this.#match(parts, part + 1, at + found.length, values);
    if (end !== undefined) values[name in values ? `${name}2` : name] = found.value;
    return end;
  }
}
