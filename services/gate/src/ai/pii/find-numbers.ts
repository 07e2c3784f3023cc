// Numbers in text that are personal: cards, accounts, phones and national identity numbers.
import { isDigit, isLetter, isWord } from "./characters.ts";
import { passesLuhn, passesMod97 } from "./check-digits.ts";
import type { PiiKind } from "../../shared-state/index.ts";
import type { Entity } from "./entity.ts";
import { isNationalCode, isNationalNumber } from "./national-ids.ts";
import { isValidPhone } from "./phone-plans.ts";

/** A number that was found, or the place after one that is none. */
export type NumberResult = Entity | { readonly end: number };

const GROUPS_MAX = 12;
const DIGITS_MAX = 19;
const SPACE = 0x20;
const NO_BREAK_SPACE = 0xa0;
/** Separators of groups: a single one, except between the parts of a phone number. */
const SEPARATORS = new Set(Array.from(" .-/+\u00a0", (character) => character.charCodeAt(0)));
const PHONE_SEPARATORS = new Set(
  Array.from(" .-/()\u00a0", (character) => character.charCodeAt(0)),
);
const PHONE_SEPARATORS_MAX = 3;
const PHONE_DIGITS_MIN = 7;
const PHONE_DIGITS_MAX = 15;
/** Characters before a number in which a word announces a phone. */
const CONTEXT_CHARACTERS = 24;
const PHONE_WORD =
  /(?:^|[^a-z])(?:phone|tel|telefon|telephone|telefono|teléfono|telefone|téléphone|mobile|mobil|handy|cell|móvil|celular|cellulare|portable|call|ring|fax|whatsapp|sms|电话|手机)[^a-z0-9]{0,3}(?:[a-z]{1,8}[^a-z0-9]{1,3}){0,2}$/;
/** Countries whose numbers are tried without a country code. */
const COUNTRIES = ["US", "DE", "GB", "FR", "ES", "IT", "NL", "PL", "SE", "BR", "CH", "IN"] as const;
const IBAN_LENGTHS: Readonly<Record<string, number>> = parseLengths(
  "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20",
);
/** Sizes of the groups of cards. */
const CARD_FORMS: readonly (readonly number[])[] = [
  [4, 4, 4, 4],
  [4, 4, 4, 4, 3],
  [4, 4, 4, 1],
  [4, 6, 5],
  [4, 6, 4],
];

/** Judges the number whose first digit is at `at`; the text before has been searched. */
export function findNumber(text: string, at: number, kinds: ReadonlySet<PiiKind>): NumberResult {
  const start = findTokenStart(text, at);
  const end = findTokenEnd(text, at);
  if (start < at || hasLetter(text, at, end)) return findCode(text, start, end, kinds);
  return findDigits(text, at, kinds);
}

function parseLengths(list: string): Record<string, number> {
  return Object.fromEntries(
    list.split(" ").map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
  );
}

function findTokenStart(text: string, at: number): number {
  let start = at;
  while (start > 0 && isWord(text.charCodeAt(start - 1)) && at - start < 40) start--;
  return start;
}

function findTokenEnd(text: string, at: number): number {
  let end = at;
  while (end < text.length && isWord(text.charCodeAt(end))) end++;
  return end;
}

function hasLetter(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (!isDigit(text.charCodeAt(at))) return true;
  return false;
}

// Letters and digits: an account, or the number of a person.
function findCode(
  text: string,
  start: number,
  end: number,
  kinds: ReadonlySet<PiiKind>,
): NumberResult {
  if (kinds.has("iban")) {
    const iban = findIban(text, start);
    if (iban !== undefined) return iban;
  }
  const isShort = end - start <= 16;
  if (kinds.has("national_id") && isShort) {
    const code = text.slice(start, end).toUpperCase();
    if (isNationalCode(code)) return { start, end, name: "NATIONAL_ID" };
  }
  return { end };
}

function findIban(text: string, start: number): Entity | undefined {
  const isStart =
    isLetter(text.charCodeAt(start)) &&
    isLetter(text.charCodeAt(start + 1)) &&
    isDigit(text.charCodeAt(start + 2)) &&
    isDigit(text.charCodeAt(start + 3));
  if (!isStart) return undefined;
  const length = IBAN_LENGTHS[text.slice(start, start + 2).toUpperCase()];
  if (length === undefined) return undefined;
  let iban = "";
  let at = start;
  for (; iban.length < length && at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (isLetter(code) || isDigit(code)) iban += text[at]!;
    else if (!isIbanSeparator(text, at)) return undefined;
  }
  if (iban.length < length || (at < text.length && isWord(text.charCodeAt(at)))) return undefined;
  return passesMod97(iban.toUpperCase()) ? { start, end: at, name: "IBAN" } : undefined;
}

function isIbanSeparator(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code !== SPACE && code !== NO_BREAK_SPACE && code !== 0x2d) return false;
  const next = text.charCodeAt(at + 1);
  return isLetter(next) || isDigit(next);
}

/** Groups of digits with the separators between them. */
interface Groups {
  readonly starts: number[];
  readonly ends: number[];
  /** Separators after each group but the last. */
  readonly gaps: string[];
}

function findDigits(text: string, at: number, kinds: ReadonlySet<PiiKind>): NumberResult {
  const groups = readGroups(text, at);
  if (kinds.has("phone")) {
    const phone = findPhone(text, at);
    if (phone !== undefined) return phone;
  }
  const { starts, ends } = groups;
  for (let last = starts.length - 1; last >= 0; last--) {
    const name = judgeGroups(text, groups, last, kinds);
    if (name !== undefined) return { start: at, end: ends[last]!, name };
  }
  if (kinds.has("national_id")) {
    const code = findSplitCode(text, groups);
    if (code !== undefined) return code;
  }
  return { end: ends[0]! };
}

function readGroups(text: string, start: number): Groups {
  const groups: Groups = { starts: [], ends: [], gaps: [] };
  let at = start;
  while (groups.starts.length < GROUPS_MAX) {
    groups.starts.push(at);
    while (at < text.length && isDigit(text.charCodeAt(at))) at++;
    groups.ends.push(at);
    const isNext = SEPARATORS.has(text.charCodeAt(at)) && isDigit(text.charCodeAt(at + 1));
    if (!isNext || at - start > 64) break;
    groups.gaps.push(text[at] === "\u00a0" ? " " : text[at]!);
    at++;
  }
  return groups;
}

// The kind of the groups up to `last`; undefined if they are none.
function judgeGroups(
  text: string,
  { starts, ends, gaps }: Groups,
  last: number,
  kinds: ReadonlySet<PiiKind>,
): string | undefined {
  let digits = "";
  const sizes: number[] = [];
  for (let group = 0; group <= last; group++) {
    digits += text.slice(starts[group], ends[group]);
    sizes.push(ends[group]! - starts[group]!);
  }
  if (digits.length > DIGITS_MAX || isPartOfMore(text, starts[0]!, ends[last]!)) return undefined;
  const separators = gaps.slice(0, last).join("");
  if (kinds.has("card") && isCard(digits, sizes, separators)) return "CARD";
  if (kinds.has("national_id") && isNationalNumber(digits, sizes, separators)) return "NATIONAL_ID";
  return undefined;
}

// Versions, addresses of hosts and UUIDs go on with a dot or a hyphen.
function isPartOfMore(text: string, start: number, end: number): boolean {
  const joins = (at: number): boolean => text[at] === "." || text[at] === "-";
  if (isWord(text.charCodeAt(end)) || (joins(end) && isWord(text.charCodeAt(end + 1)))) return true;
  return joins(start - 1) && start > 1 && isWord(text.charCodeAt(start - 2));
}

function isCard(digits: string, sizes: readonly number[], separators: string): boolean {
  if (digits.length < 13 || !passesLuhn(digits) || !isCardRange(digits)) return false;
  if (sizes.length === 1) return true;
  const separator = separators[0]!;
  const isUniform = separators === separator.repeat(separators.length);
  if (!isUniform || (separator !== " " && separator !== "-")) return false;
  return CARD_FORMS.some(
    (form) => form.length === sizes.length && form.every((size, at) => sizes[at] === size),
  );
}

/** Ranges of issuers (ISO/IEC 7812-1) with the lengths of their numbers. */
function isCardRange(digits: string): boolean {
  const { length } = digits;
  const two = Number(digits.slice(0, 2));
  const four = Number(digits.slice(0, 4));
  if (digits[0] === "4") return length === 13 || length === 16 || length === 19;
  if (two === 34 || two === 37) return length === 15;
  if ((two >= 51 && two <= 55) || (four >= 2221 && four <= 2720)) return length === 16;
  if (two === 36 || two === 38 || two === 39 || (four >= 3000 && four <= 3059)) return length >= 14;
  if (four === 6011 || two === 65 || (four >= 6440 && four <= 6499)) return length >= 16;
  if (four >= 3528 && four <= 3589) return length >= 16;
  if (two === 62 || two === 81) return length >= 16;
  return [5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763].includes(four);
}

// A phone number that begins here; `+`, `00` or an opening parenthesis may stand before it.
function findPhone(text: string, at: number): Entity | undefined {
  const lead = at > 0 ? text[at - 1] : "";
  const isPlus = lead === "+" || (lead === "(" && text[at - 2] === "+");
  const isInternational = isPlus || text.startsWith("00", at);
  let start = at;
  if (lead === "+" || lead === "(") start = at - 1;
  if (lead === "(" && isPlus) start = at - 2;
  if (start > 0 && isWord(text.charCodeAt(start - 1))) return undefined;
  const { ends, groups } = listPhoneEnds(text, at);
  // The longest one counts: those before it need no check.
  for (let last = ends.length - 1; last >= 0; last--) {
    const end = ends[last]!;
    if (isPhone(text.slice(start, end), isInternational, text, start, groups[last]!))
      return { start, end, name: "PHONE" };
  }
  return undefined;
}

// The places at which a phone number that begins at a digit may end, and its groups up to there.
function listPhoneEnds(text: string, at: number): { ends: number[]; groups: number[] } {
  const found = { ends: [] as number[], groups: [] as number[] };
  let digits = 0;
  let end = at;
  for (let groups = 1; end < text.length && digits <= PHONE_DIGITS_MAX; groups++) {
    const first = end;
    while (end < text.length && isDigit(text.charCodeAt(end))) end++;
    digits += end - first;
    const isWhole = end >= text.length || !isWord(text.charCodeAt(end));
    if (digits >= PHONE_DIGITS_MIN && digits <= PHONE_DIGITS_MAX && isWhole) {
      found.ends.push(end);
      found.groups.push(groups);
    }
    const next = skipSeparators(text, end);
    if (next === -1) break;
    end = next;
  }
  return found;
}

function skipSeparators(text: string, at: number): number {
  let next = at;
  while (next - at < PHONE_SEPARATORS_MAX && PHONE_SEPARATORS.has(text.charCodeAt(next))) next++;
  return next > at && isDigit(text.charCodeAt(next)) ? next : -1;
}

function isPhone(
  candidate: string,
  isInternational: boolean,
  text: string,
  start: number,
  groups: number,
): boolean {
  if (isInternational) {
    const number = candidate.replace(/^\(?(?:\+|00)/, "+");
    return isValidPhone(number);
  }
  // As it is written in North America: area code, exchange, line.
  const isAmerican = groups === 3 && /^\(?[2-9]\d{2}\)?[ .-]{1,2}\d{3}[.-]\d{4}$/.test(candidate);
  if (isAmerican) return isValidPhone(candidate, "US");
  const before = text.slice(Math.max(0, start - CONTEXT_CHARACTERS), start).toLowerCase();
  if (!PHONE_WORD.test(before)) return false;
  return COUNTRIES.some((country) => isValidPhone(candidate, country));
}

// National numbers whose letters are apart from their digits: `12345678-Z`, `X-1234567-L`, `AB 12 34 56 C`.
function findSplitCode(text: string, { starts, ends }: Groups): Entity | undefined {
  for (const last of [0, 2]) {
    if (last >= starts.length) continue;
    const isInsurance =
      last === 2 && starts.every((start, group) => group > 2 || ends[group]! - start === 2);
    const size = ends[0]! - starts[0]!;
    if (last === 2 ? !isInsurance : size !== 6 && size !== 7 && size !== 8) continue;
    const end = ends[last]!;
    const tail = /^[ -]?[A-Za-z](?![\p{L}\p{N}_])/u.exec(text.slice(end, end + 3));
    if (tail === null) continue;
    const head = /(?<![\p{L}\p{N}_])(?:[A-Za-z]{1,2})[ -]?$/u.exec(
      text.slice(Math.max(0, starts[0]! - 4), starts[0]),
    );
    const start = starts[0]! - (head?.[0].length ?? 0);
    const code = text
      .slice(start, end + tail[0].length)
      .toUpperCase()
      .replaceAll(/[ -]/g, "");
    if (isNationalCode(code)) return { start, end: end + tail[0].length, name: "NATIONAL_ID" };
    const bare = text
      .slice(starts[0], end + tail[0].length)
      .toUpperCase()
      .replaceAll(/[ -]/g, "");
    if (head !== null && isNationalCode(bare))
      return { start: starts[0]!, end: end + tail[0].length, name: "NATIONAL_ID" };
  }
  return undefined;
}
