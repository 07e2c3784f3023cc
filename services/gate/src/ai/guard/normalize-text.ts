// Brings a text into the form in which the guard judges it: without the disguises that models read through.
import { isUtf8 } from "node:buffer";

/** Letters of other scripts that look like Latin ones, in lower case. */
const LOOKALIKES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    аαａ: "a",
    ьвЬ: "b",
    сϲⅽ: "c",
    ԁⅾ: "d",
    еєεё: "e",
    ɡց: "g",
    һհ: "h",
    іїιıӏ: "i",
    јϳ: "j",
    κк: "k",
    ⅼ: "l",
    мⅿ: "m",
    ոпη: "n",
    оοσօ: "o",
    рρ: "p",
    ԛգ: "q",
    гг: "r",
    ѕꜱ: "s",
    тτ: "t",
    υսц: "u",
    νѵ: "v",
    ԝա: "w",
    хχ: "x",
    уγү: "y",
    ʐᴢ: "z",
  }).flatMap(([letters, latin]) => Array.from(letters, (letter) => [letter, latin] as const)),
);
const CODED_MIN = 24;
const CODED_MAX = 8_192;
/** Share of letters and spaces from which decoded bytes are text. */
const TEXT_SHARE_MIN = 0.8;
const LETTERS_JOINED_MIN = 5;

/** Words that stand in a text that is written from right to left as a whole. */
const REVERSED_WORDS = /(?:tpmorp|snoitcurtsni|erongi|laever|metsys|drowssap|selur|negnusiewna)/i;
/** Pieces of a text that are to be joined: `"ig" + "nore"`. */
const PIECES = /["'“”„«»`]\s?\+\s?["'“”„«»`]/g;
/** The licence of many programs, whose text is in many prompts. */
const LICENCE = /\bwithout\s+restriction,\s+including\s+without\s+limitation\b/gi;
/** Texts that say of themselves how they are to be read. */
const REVERSED =
  /\b(?:backwards?|reversed?|mirrored)\b|\brückwärts\b|\bumgekehrt\b|\bà l['’]envers\b|\bal revés\b/i;
const ROTATED = /\brot-?13\b|\bcaesar\b/i;

/** A text in lower case, with what it has in base64 or hex, backwards or in ROT13 after it. */
export function normalizeText(text: string): string {
  let whole = text.includes("+") ? text.replaceAll(PIECES, "") : text;
  whole = whole.replaceAll(LICENCE, "including");
  const decoded = decodeRuns(whole);
  if (decoded !== "") whole += `\n\n${decoded}`;
  if (REVERSED.test(text) || REVERSED_WORDS.test(text))
    whole += `\n\n${Array.from(text).reverse().join("")}`;
  if (ROTATED.test(text)) whole += `\n\n${text.replaceAll(/[a-z]/gi, rotate)}`;
  return joinLetters(isAscii(whole) ? whole.toLowerCase() : fold(whole));
}

function rotate(letter: string): string {
  const code = letter.charCodeAt(0);
  return String.fromCharCode((code & 0x1f) <= 13 ? code + 13 : code - 13);
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 0x7e) return false;
  return true;
}

function fold(text: string): string {
  let folded = "";
  for (const character of text.normalize("NFKC").toLowerCase()) {
    const code = character.codePointAt(0)!;
    if (isHidden(code)) continue;
    folded += code < 0x80 ? character : (LOOKALIKES.get(toBase(character, code)) ?? character);
  }
  return folded;
}

/** Greek and Cyrillic letters without their accents. */
function toBase(character: string, code: number): string {
  return code >= 0x370 && code < 0x530 ? character.normalize("NFD")[0]! : character;
}

// Zero-width and control characters, soft hyphens, variation selectors, tags.
function isHidden(code: number): boolean {
  if (code < 0x20) return code !== 0x0a && code !== 0x09 && code !== 0x0d;
  if (code < 0xad) return code === 0x7f;
  return (
    code === 0xad ||
    code === 0x180e ||
    (code >= 0x200b && code <= 0x200f) ||
    (code >= 0x202a && code <= 0x202e) ||
    (code >= 0x2060 && code <= 0x2064) ||
    (code >= 0xfe00 && code <= 0xfe0f) ||
    code === 0xfeff ||
    code >= 0xe0000
  );
}

/** Joins letters that stand alone: `i g n o r e` and `i-g-n-o-r-e`. */
function joinLetters(text: string): string {
  let joined = "";
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const end = findLettersEnd(text, at);
    if (end === -1) continue;
    joined += text.slice(from, at);
    for (let letter = at; letter < end; letter += 2) joined += text[letter]!;
    from = end;
    at = end - 1;
  }
  return from === 0 ? text : joined + text.slice(from);
}

// The end of letters from `at` on that one separator each stands between; -1 if they are too few.
function findLettersEnd(text: string, at: number): number {
  const separator = text[at + 1];
  const isSeparated =
    separator === " " || separator === "-" || separator === "." || separator === "_";
  if (!isSeparated || !isAlone(text, at)) return -1;
  let end = at + 1;
  while (text[end] === separator && isLetterOrDigit(text.charCodeAt(end + 1))) {
    if (isLetterOrDigit(text.charCodeAt(end + 2))) break;
    end += 2;
  }
  return (end - at + 1) / 2 >= LETTERS_JOINED_MIN ? end : -1;
}

function isAlone(text: string, at: number): boolean {
  const isFirst = at === 0 || !isLetterOrDigit(text.charCodeAt(at - 1));
  return isFirst && isLetterOrDigit(text.charCodeAt(at));
}

function isLetterOrDigit(code: number): boolean {
  return (
    (code >= 0x61 && code <= 0x7a) ||
    (code >= 0x30 && code <= 0x39) ||
    (code >= 0x41 && code <= 0x5a)
  );
}

/** Texts that are written in base64 or hex. */
function decodeRuns(text: string): string {
  const decoded: string[] = [];
  for (let at = 0; at < text.length;) {
    let end = at;
    while (end < text.length && isCoded(text.charCodeAt(end))) end++;
    if (end - at >= CODED_MIN && end - at <= CODED_MAX)
      decoded.push(...decodeRun(text.slice(at, end)));
    at = end + 1;
  }
  return decoded.join("\n");
}

function isCoded(code: number): boolean {
  return isLetterOrDigit(code) || code === 0x2b || code === 0x2f || code === 0x2d || code === 0x5f;
}

function decodeRun(run: string): string[] {
  const isHex = run.length % 2 === 0 && /^[0-9a-fA-F]+$/.test(run);
  return [isHex ? Buffer.from(run, "hex") : undefined, Buffer.from(run, "base64")].flatMap(
    (bytes) => (bytes !== undefined && isText(bytes) ? [bytes.toString("utf8")] : []),
  );
}

function isText(bytes: Buffer): boolean {
  if (!isUtf8(bytes)) return false;
  let letters = 0;
  for (const byte of bytes) {
    if (byte < 0x20 && byte !== 0x0a && byte !== 0x09 && byte !== 0x0d) return false;
    if (byte === 0x20 || byte >= 0x80 || (byte | 0x20) >= 0x61) letters++;
  }
  return letters >= bytes.length * TEXT_SHARE_MIN;
}
