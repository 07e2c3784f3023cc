// Colours and completion of statements: a scanner of its own, because the JSON editor is larger than this page.

/** A part of a statement. */
export interface SqlPart {
  text: string;
  /** Class of its colour; empty for plain text. */
  kind: "" | "js-k" | "js-s" | "js-n" | "js-p" | "sql-comment";
}

const KEYWORDS: ReadonlySet<string> = new Set(
  `all and as asc between by case cast collate count create cross current_date current_timestamp default delete desc
  distinct else end escape except exists explain false from full glob group having ilike in inner insert intersect into is
  join lateral left like limit natural not null offset on or order outer over partition recursive returning right select set
  sum then true union update using values when where window with`.split(/\s+/),
);
const PART =
  /(--[^\n]*|\/\*[^]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|([\p{L}_][\p{L}\p{N}_$]*)|(\d[\d.]*)|([:@$][\p{L}\p{N}_]+)|([^])/gu;

/** Splits a statement into coloured parts; together they are the text. */
export function colourSql(text: string): SqlPart[] {
  const parts: SqlPart[] = [];
  for (const found of text.matchAll(PART)) {
    const [whole, comment, string, , word, number, parameter] = found;
    const kind =
      comment !== undefined
        ? "sql-comment"
        : string !== undefined
          ? "js-s"
          : number !== undefined || parameter !== undefined
            ? "js-n"
            : word !== undefined && KEYWORDS.has(word.toLowerCase())
              ? "js-k"
              : "";
    const last = parts.at(-1);
    if (last?.kind === kind) last.text += whole;
    else parts.push({ text: whole, kind });
  }
  return parts;
}

/** The end of the word, or the character, at a fault. */
export function findFaultEnd(text: string, at: number): number {
  const word = /^(?:[\p{L}\p{N}_$]+|"[^"\n]*"?|[^])/u.exec(text.slice(at))?.[0] ?? "";
  return at + word.length;
}

/** Cuts parts at a fault, which is marked; at the end of the text it is the last character. */
export function markFault(
  parts: readonly SqlPart[],
  fault: number | undefined,
): (SqlPart & { isFault: boolean })[] {
  const all = parts.map((part) => ({ ...part, isFault: false }));
  if (fault === undefined) return all;
  const text = parts.map((part) => part.text).join("");
  const from = Math.min(fault, Math.max(0, text.length - 1));
  const to = findFaultEnd(text, from);
  let at = 0;
  return all.flatMap((part) => {
    const start = at;
    at += part.text.length;
    return [start, from, to, at]
      .map((place) => Math.min(at, Math.max(start, place)) - start)
      .flatMap((place, index, places) => {
        const next = places[index + 1];
        if (next === undefined || next === place) return [];
        return [{ ...part, text: part.text.slice(place, next), isFault: index === 1 }];
      });
  });
}

/** The word before a place in a text. */
export function wordBefore(text: string, at: number): string {
  return /[\p{L}\p{N}_]*$/u.exec(text.slice(0, at))?.[0] ?? "";
}

/** Names that begin with a word, those of the tables in the text first. */
export function completeWord(word: string, names: readonly string[]): string[] {
  if (word === "") return [];
  const start = word.toLowerCase();
  const all = [...new Set([...names, ...KEYWORDS])];
  return all.filter((name) => name.toLowerCase().startsWith(start) && name !== word).slice(0, 8);
}

/** Names of the parameters of a statement: `id` of `:id`. Casts, texts and comments have none. */
export function listParameters(text: string): string[] {
  const names = new Set<string>();
  let before = "";
  for (const [whole, , , , , , parameter] of text.matchAll(PART)) {
    if (parameter !== undefined && before !== ":" && !/^\$\d/.test(parameter)) {
      names.add(parameter.slice(1));
    }
    before = whole;
  }
  return [...names];
}
