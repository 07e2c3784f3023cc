// Finds personal data and secrets in text: looks for characters that they have in common, then checks candidates.
import type { RE2JS } from "re2js";
import { isDigit, isLetter, isWord } from "./characters.ts";
import type { PiiKind } from "../../shared-state/index.ts";
import type { Entity, PiiSearch } from "./entity.ts";
import { findSecrets, JWT_START, PEM_START } from "./find-secrets.ts";
import { findNumber } from "./find-numbers.ts";

const LOCAL_CHARACTERS_MAX = 64;
const DOMAIN_CHARACTERS_MAX = 253;
const AT = "@";
const AT_CODE = 0x40;
/** Characters of local parts besides letters and digits (RFC 5322 section 3.2.3), without quotes. */
const LOCAL_MARKS = "!#$%&*+-/=?^_{|}~.";

/** All entities of a text in order, without overlaps: of two that overlap, the one that begins first. */
export function findEntities(text: string, search: PiiSearch): Entity[] {
  const found: Entity[] = [];
  const { kinds, patterns } = search;
  if (patterns.length === 0 && !mayHaveEntities(text)) return found;
  if (kinds.has("secret")) findSecrets(text, found);
  if (kinds.has("email")) findEmails(text, found);
  if (kinds.has("card") || kinds.has("iban") || kinds.has("phone") || kinds.has("national_id"))
    findNumbers(text, kinds, found);
  for (const { name, pattern } of patterns) findPattern(text, name, pattern, found);
  return found.length < 2 ? found : dropOverlaps(found);
}

// Most prose has none of the characters without which nothing is found; keys with known prefixes have a digit.
function mayHaveEntities(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (isDigit(code) || code === AT_CODE) return true;
  }
  return text.includes(JWT_START) || text.includes(PEM_START);
}

function dropOverlaps(found: Entity[]): Entity[] {
  found.sort((one, other) => one.start - other.start || other.end - one.end);
  const kept: Entity[] = [];
  let end = 0;
  for (const entity of found) {
    if (entity.start < end) continue;
    kept.push(entity);
    end = entity.end;
  }
  return kept;
}

function findPattern(text: string, name: string, pattern: RE2JS, found: Entity[]): void {
  const matcher = pattern.matcher(text);
  while (matcher.find()) {
    const start = matcher.start();
    const end = matcher.end();
    if (end > start) found.push({ start, end, name });
  }
}

function findEmails(text: string, found: Entity[]): void {
  for (let at = text.indexOf(AT); at !== -1; at = text.indexOf(AT, at + 1)) {
    let start = at;
    const first = Math.max(0, at - LOCAL_CHARACTERS_MAX);
    while (start > first && isLocal(text.charCodeAt(start - 1))) start--;
    while (start < at && isMark(text.charCodeAt(start))) start++;
    const end = findDomainEnd(text, at + 1);
    if (start < at && end !== -1) found.push({ start, end, name: "EMAIL" });
  }
}

function isLocal(code: number): boolean {
  return isWord(code) || isMark(code);
}

function isMark(code: number): boolean {
  return code < 128 && LOCAL_MARKS.includes(String.fromCharCode(code)) && code !== 0x5f;
}

// The end of a domain name with at least one dot and a top-level name of letters; -1 if there is none.
function findDomainEnd(text: string, start: number): number {
  const limit = Math.min(text.length, start + DOMAIN_CHARACTERS_MAX);
  let end = start;
  let labelStart = start;
  let valid = -1;
  for (; end <= limit; end++) {
    const code = end < text.length ? text.charCodeAt(end) : 0;
    if (end < limit && isWord(code) && code !== 0x5f) continue;
    if (end < limit && code === 0x2d && end > labelStart) continue;
    const hasLabel = end > labelStart;
    if (hasLabel && labelStart > start && isTopLevel(text, labelStart, end)) valid = end;
    if (code !== 0x2e || !hasLabel) break;
    labelStart = end + 1;
  }
  return valid;
}

function isTopLevel(text: string, start: number, end: number): boolean {
  if (end - start < 2) return false;
  if (text.startsWith("xn--", start)) return true;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (!isLetter(code) && code < 128) return false;
  }
  return true;
}

function findNumbers(text: string, kinds: ReadonlySet<PiiKind>, found: Entity[]): void {
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at);
    if (!isDigit(code)) {
      at++;
      continue;
    }
    const result = findNumber(text, at, kinds);
    if ("name" in result) found.push(result);
    at = Math.max(at + 1, result.end);
  }
}
