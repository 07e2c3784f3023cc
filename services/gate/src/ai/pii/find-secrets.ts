// Secrets in text: private keys, tokens, and keys with known prefixes.
import { isDigit, isLetter } from "./characters.ts";
import type { Entity } from "./entity.ts";

const NAME = "SECRET";
/** Starts of keys, and the fewest characters that follow them. */
const PREFIXES: readonly (readonly [prefix: string, rest: number])[] = [
  ["sk-", 20],
  ["pk_live_", 16],
  ["sk_live_", 16],
  ["rk_live_", 16],
  ["sk_test_", 16],
  ["AKIA", 16],
  ["ASIA", 16],
  ["ghp_", 30],
  ["gho_", 30],
  ["ghu_", 30],
  ["ghs_", 30],
  ["ghr_", 30],
  ["github_pat_", 40],
  ["glpat-", 18],
  ["xoxb-", 20],
  ["xoxp-", 20],
  ["xoxa-", 20],
  ["xapp-", 20],
  ["AIza", 35],
  ["ya29.", 20],
  ["hf_", 30],
  ["npm_", 30],
  ["SG.", 40],
  ["dop_v1_", 40],
  ["whsec_", 24],
];
/** Start of a PEM block (RFC 7468 section 2). */
export const PEM_START = "-----BEGIN ";
const PEM_LABEL = "PRIVATE KEY";
const PEM_END = "-----END ";
const DASHES = "-----";
const LABEL_CHARACTERS_MAX = 64;
/** Start of a JSON Web Token: `{"` in base64url. */
export const JWT_START = "eyJ";
const JWT_PART_MIN = 10;

/** Characters of a key: letters, digits, `-`, `_` and, in tokens, `.`. */
export function isKeyCharacter(code: number): boolean {
  return isLetter(code) || isDigit(code) || code === 0x2d || code === 0x5f;
}

/** Adds all secrets of a text. */
export function findSecrets(text: string, found: Entity[]): void {
  findPem(text, found);
  findTokens(text, found);
  for (const [prefix, rest] of PREFIXES) {
    for (let at = text.indexOf(prefix); at !== -1; at = text.indexOf(prefix, at + 1)) {
      if (!isAtStart(text, at)) continue;
      const end = findEnd(text, at + prefix.length, prefix.endsWith("."));
      if (end - at - prefix.length >= rest && hasDigit(text, at, end))
        found.push({ start: at, end, name: NAME });
    }
  }
}

/** True if a secret begins at `start`, whatever follows. */
export function findOpenSecret(text: string, start: number): boolean {
  if (text.startsWith(PEM_START, start)) return true;
  if (text.startsWith(JWT_START, start)) return true;
  return PREFIXES.some(([prefix]) => text.startsWith(prefix, start));
}

/** Start of a PEM block whose end is missing; -1 if the text has none. */
export function findOpenPem(text: string): number {
  const start = text.lastIndexOf(PEM_START);
  if (start === -1) return -1;
  const last = text.indexOf(PEM_END, start);
  const isClosed = last !== -1 && text.indexOf(DASHES, last + PEM_END.length) !== -1;
  return isClosed ? -1 : start;
}

/** The end of the last private key of a text, which is complete; 0 if there is none. */
export function findPemEnd(text: string): number {
  const last = text.lastIndexOf(PEM_END);
  const dashes = last === -1 ? -1 : text.indexOf(DASHES, last + PEM_END.length);
  return dashes === -1 ? 0 : dashes + DASHES.length;
}

function findPem(text: string, found: Entity[]): void {
  for (let start = text.indexOf(PEM_START); start !== -1;) {
    const label = text.slice(start, start + LABEL_CHARACTERS_MAX);
    if (label.includes(PEM_LABEL)) {
      const last = text.indexOf(PEM_END, start);
      // A key without an end is hidden to the end of the text.
      const dashes = last === -1 ? -1 : text.indexOf(DASHES, last + PEM_END.length);
      const end = dashes === -1 ? text.length : dashes + DASHES.length;
      found.push({ start, end, name: NAME });
      start = text.indexOf(PEM_START, end);
    } else start = text.indexOf(PEM_START, start + 1);
  }
}

// JSON Web Tokens: the header begins with `{"` in base64url.
function findTokens(text: string, found: Entity[]): void {
  for (let at = text.indexOf(JWT_START); at !== -1; at = text.indexOf(JWT_START, at + 1)) {
    if (!isAtStart(text, at)) continue;
    const header = findEnd(text, at, false);
    if (header - at < JWT_PART_MIN || text[header] !== ".") continue;
    const payload = findEnd(text, header + 1, false);
    if (payload - header - 1 < JWT_PART_MIN) continue;
    const end = text[payload] === "." ? findEnd(text, payload + 1, true) : payload;
    found.push({ start: at, end, name: NAME });
  }
}

function isAtStart(text: string, at: number): boolean {
  return at === 0 || !isKeyCharacter(text.charCodeAt(at - 1));
}

function findEnd(text: string, start: number, hasDots: boolean): number {
  let end = start;
  while (end < text.length) {
    const code = text.charCodeAt(end);
    if (!isKeyCharacter(code) && !(hasDots && code === 0x2e)) break;
    end++;
  }
  return end;
}

function hasDigit(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (isDigit(text.charCodeAt(at))) return true;
  return false;
}
