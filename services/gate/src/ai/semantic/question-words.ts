// Questions that may have the same answer: equal ones but for their form, and those whose meaning a vector finds alike.
import {
  CONTRACTIONS,
  DECISIVE_WORDS,
  FUNCTION_WORDS,
  MEASURES,
  NEGATIONS,
  NUMBER_WORDS,
  OPENING_WORDS,
  POLAR_WORDS,
} from "./word-lists.ts";

const POLITE_STARTS = ["could you please ", "can you please ", "would you please ", "please "];
const GREETINGS = ["hi, ", "hello, ", "hey, ", "hi! ", "hello! ", "hey! "];
const POLITE_ENDS = [", please", ", thanks", ", thank you", "? thanks", "? thank you"];
const EDGES = new Set("?.!,;:…()[]{}\"'«»„“”‚‘’`");
const CODE_MARKS = new Set("_@#$\\/<>=|~^*+&");
/** Characters of scripts without spaces between words. */
const UNSPACED = /[\u2e80-\ud7ff\uf900-\ufaff]/;
const CLOSING_QUOTES: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  "`": "`",
  "“": "”",
  "„": "“",
  "«": "»",
  "‘": "’",
};

/**
 * The form of a question by which it is stored: the same words in the same order have the same answer, whatever their spaces,
 * contractions and politeness. Code and lists, which have lines, stay as they are.
 */
export function normalizeQuestion(text: string): string {
  const trimmed = text.normalize("NFC").trim();
  if (/[`\n\r\t]/.test(trimmed)) return trimmed;
  const straight = trimmed.replaceAll(/[‘’]/g, "'").replaceAll(/[“”]/g, '"');
  const words = straight.split(/\s+/).map((word, index) => expandWord(word, index === 0));
  return cutEnd(cutStart(words.join(" ")));
}

function expandWord(word: string, isFirst: boolean): string {
  const isPlain = /^[A-Z]?[a-z']+[?.!,]?$/.test(word);
  if (!isPlain) return word;
  const lower = word.toLowerCase();
  const bare = lower.replace(/[?.!,]$/, "");
  const long = CONTRACTIONS.get(bare);
  const isExpanded = long !== undefined && (isFirst || word === lower);
  if (isExpanded) return long + lower.slice(bare.length);
  return isFirst && (OPENING_WORDS.has(bare) || /^(?:hi|hello|hey)$/.test(bare)) ? lower : word;
}

function cutStart(text: string): string {
  let rest = text;
  for (const start of [...GREETINGS, ...POLITE_STARTS]) {
    if (!rest.toLowerCase().startsWith(start) || rest.length === start.length) continue;
    rest = rest.slice(start.length);
    const [first = "", ...others] = rest.split(" ");
    rest = [expandWord(first, true), ...others].join(" ");
  }
  return rest;
}

// The mark after a number or a single letter may be part of it: `5!`.
function cutEnd(text: string): string {
  let rest = cutMark(text);
  for (const end of POLITE_ENDS) {
    if (rest.toLowerCase().endsWith(end)) rest = cutMark(rest.slice(0, -end.length));
  }
  return rest;
}

function cutMark(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === "?") end--;
  const isWord = /\p{L}{2}$/u.test(text.slice(0, end).replace(/[.!]$/, ""));
  if (isWord && /[.!]$/.test(text.slice(0, end))) end--;
  return text.slice(0, end).trimEnd();
}

/** Parts of a question that must be equal in another one with the same answer. */
export interface QuestionMeaning {
  /** Numbers, negations, opposites, quoted and code words, names; in order. */
  readonly exact: readonly string[];
  /** First words of sentences that may be names. */
  readonly openings: readonly string[];
  /** Words with a meaning, in lower case and in order. */
  readonly content: readonly string[];
  /** All words in lower case. */
  readonly words: readonly string[];
}

/** Reads the meaning of a question. */
export function readMeaning(text: string): QuestionMeaning {
  const exact: string[] = [];
  const openings: string[] = [];
  const content: string[] = [];
  const words: string[] = [];
  let startsSentence = true;
  for (const raw of splitWords(normalizeQuestion(text))) {
    const quoted = raw.startsWith("\u0000");
    const word = quoted ? raw.slice(1) : stripEdges(raw);
    if (word === "") continue;
    const lower = word.toLowerCase();
    const isOpening = startsSentence && /^\p{Lu}\p{Ll}*$/u.test(word);
    if (quoted) exact.push(`"${word}`);
    else if (isExact(word, lower, isOpening) || isBound(words.at(-1) ?? "", lower))
      exact.push(/^\p{Lu}/u.test(word) ? word : lower);
    else if (isOpening && !OPENING_WORDS.has(lower)) openings.push(lower);
    words.push(lower);
    if (!FUNCTION_WORDS.has(lower)) content.push(lower);
    startsSentence = /[.!?:]$/.test(raw);
  }
  return { exact, openings, content, words };
}

/** True if two questions whose vectors are alike may have the same answer. */
export function mayShareAnswer(one: QuestionMeaning, other: QuestionMeaning): boolean {
  if (!isEqual(one.exact, other.exact)) return false;
  const [own, theirs] = [new Set(one.content), new Set(other.content)];
  if (!one.openings.every((word) => theirs.has(word))) return false;
  if (!other.openings.every((word) => own.has(word))) return false;
  // "Dog bites cat" is not "cat bites dog".
  const shared = one.content.filter((word) => theirs.has(word));
  if (
    !isEqual(
      shared,
      other.content.filter((word) => own.has(word)),
    )
  )
    return false;
  const [more, others] = [listMore(one.content, theirs), listMore(other.content, own)];
  if (more.length === 0 && others.length === 0) return true;
  // One word in place of another is another question more often than a synonym.
  if (shared.length === 0 || (more.length === 1 && others.length === 1)) return false;
  if (more.length > 0 && others.length > 0 && [...more, ...others].some(isUnspaced)) return false;
  // So is the same sentence with other words, or with more of them.
  return !isEqual(listMore(one.words, new Set(more)), listMore(other.words, new Set(others)));
}

function listMore(words: readonly string[], known: ReadonlySet<string>): string[] {
  return words.filter((word) => !known.has(word));
}

function isUnspaced(word: string): boolean {
  return UNSPACED.test(word);
}

function isExact(word: string, lower: string, isOpening: boolean): boolean {
  if (/\p{N}/u.test(word) || NEGATIONS.has(lower) || NUMBER_WORDS.has(lower)) return true;
  if (POLAR_WORDS.has(lower) || DECISIVE_WORDS.has(lower) || isCode(word)) return true;
  if (/^\p{L}$/u.test(word) && !/^[ai]$/i.test(word)) return true;
  return /^\p{Lu}/u.test(word) && !isOpening && lower !== "i";
}

// Words that matter after others: "how many", "6 am".
function isBound(before: string, lower: string): boolean {
  return (before === "how" && MEASURES.has(lower)) || (/\d$/.test(before) && /^[ap]m$/.test(lower));
}

function isCode(word: string): boolean {
  for (const character of word) if (CODE_MARKS.has(character)) return true;
  return /\p{Ll}\p{Lu}|\p{L}\.\p{L}|::|\(\)|[-–—]\p{L}*-|%/u.test(word);
}

// Words, quoted texts in one piece with a mark before them, and characters of scripts without spaces.
function splitWords(text: string): string[] {
  const words: string[] = [];
  let word = "";
  const flush = (): void => {
    if (word !== "") words.push(word);
    word = "";
  };
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    const closing = CLOSING_QUOTES[character];
    const end = word === "" && closing !== undefined ? text.indexOf(closing, at + 1) : -1;
    if (end > at + 1) {
      words.push(`\u0000${text.slice(at + 1, end)}`);
      at = end;
    } else if (/\s/.test(character)) flush();
    else if (UNSPACED.test(character)) {
      flush();
      words.push(character);
    } else word += character;
  }
  flush();
  return words;
}

function stripEdges(word: string): string {
  // A placeholder for personal data is one word with its brackets.
  if (/^\[[A-Z0-9_]+\][?.!,;:]*$/.test(word)) return word.replace(/[?.!,;:]+$/, "");
  let start = 0;
  let end = word.length;
  while (start < end && EDGES.has(word[start]!)) start++;
  while (end > start && EDGES.has(word[end - 1]!)) end--;
  // The mark of a factorial belongs to its number.
  const isFactorial = /^\d+!$/.test(word.slice(start, end + 1));
  return word.slice(start, isFactorial ? end + 1 : end);
}

function isEqual(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((word, index) => word === other[index]);
}
