// Judges a new password by the rules of the service (sign-in/password-policy.ts) and estimates its strength. Nothing leaves the page.

const CHARS_MIN = 8;
const CHARS_MAX = 128;
/** Bits from which a password is fair, good and strong. */
const STEPS = [28, 44, 64];
/** A character of a word or a pattern is worth less than a random one. */
const CHAR_BITS_MAX = 4;
const REPEATED = 0.25;
const TAIL = 0.5;
const ROWS = ["qwertyuiop", "qwertzuiop", "asdfghjkl", "zxcvbnm", "yxcvbnm", "1234567890"];
const POOLS = [
  [/\p{Ll}/u, 26],
  [/\p{Lu}/u, 26],
  [/\d/, 10],
  [/[^\p{L}\d]/u, 33],
];

/**
 * Returns the broken rule (`short`, `long`, `common`, `name`, `service`) and the number of missing characters, or the
 * strength from 1 to 4. `names` are the user's, `words` those of the service; `isCommon` may be undefined until the list
 * of common passwords is loaded.
 */
export function judge(password, { names, words, isCommon }) {
  const prepared = password.normalize("NFKC");
  const chars = Array.from(prepared);
  if (chars.length < CHARS_MIN) return { problem: "short", missing: CHARS_MIN - chars.length };
  if (chars.length > CHARS_MAX) return { problem: "long" };
  const folded = prepared.toLowerCase();
  if (isCommon?.(folded) === true) return { problem: "common" };
  const letters = keepLetters(folded);
  const isOwn = (name) =>
    name.toLowerCase() === folded || (letters !== "" && keepLetters(name) === letters);
  if (names.some(isOwn)) return { problem: "name" };
  if (letters !== "" && words.some((word) => keepLetters(word) === letters))
    return { problem: "service" };
  const bits = estimateBits(prepared);
  return { strength: 1 + STEPS.filter((step) => bits >= step).length };
}

/**
 * Reads the list of common passwords: base64 of the gaps between sorted 28-bit hashes (common-passwords.ts). One of
 * 15 000 other passwords has the hash of a listed one.
 */
export function readCommon(base64) {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const hashes = new Set();
  let hash = 0;
  let gap = 0;
  let shift = 0;
  for (const byte of bytes) {
    gap += (byte & 127) << shift;
    shift += 7;
    if (byte > 127) continue;
    hash += gap;
    hashes.add(hash);
    gap = 0;
    shift = 0;
  }
  return (folded) => hashes.has(hashText(folded));
}

// FNV-1a over UTF-16 code units.
function hashText(text) {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 4;
}

function keepLetters(text) {
  return text.toLowerCase().replaceAll(/[^\p{L}]/gu, "");
}

function estimateBits(password) {
  const unit = findUnit(password);
  const pool = POOLS.reduce((sum, [chars, size]) => sum + (chars.test(unit) ? size : 0), 1);
  // Words are followed by a year or an exclamation mark.
  const tail = /\p{L}/u.test(unit) ? (/[^\p{L}]+$/u.exec(unit)?.[0].length ?? 0) : 0;
  const chars = Array.from(unit);
  let worth = 0;
  for (const index of chars.keys()) {
    const [first, second, third] = [chars[index - 2], chars[index - 1], chars[index]];
    const isPredictable = follows(first, second) && follows(second, third);
    worth += isPredictable ? REPEATED : index >= chars.length - tail ? TAIL : 1;
  }
  return worth * Math.min(Math.log2(pool), CHAR_BITS_MAX);
}

// "abcabcabc" is worth little more than "abc".
function findUnit(password) {
  const period = `${password}${password}`.indexOf(password, 1);
  return password.slice(0, period);
}

// Repetitions, sequences and neighbours on the keyboard.
function follows(before, char) {
  if (before === undefined) return false;
  const step = char.codePointAt(0) - before.codePointAt(0);
  const pair = `${before}${char}`.toLowerCase();
  const back = `${char}${before}`.toLowerCase();
  return Math.abs(step) <= 1 || ROWS.some((row) => row.includes(pair) || row.includes(back));
}
