// Classes of characters in text that is searched for personal data.

/** Kinds of characters below 128: 1 digit, 2 letter. */
const CLASSES = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code >= 0x30 && code <= 0x39) return 1;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x7a ? 2 : 0;
});

/** Letters of scripts with spaces between words: Latin, Greek, Cyrillic, Arabic, those of India and others. */
const LETTERS_FROM = 0xc0;
const PUNCTUATION_FROM = 0x2000;

/** True for an ASCII digit. */
export function isDigit(code: number): boolean {
  return code < 128 && CLASSES[code] === 1;
}

/** True for an ASCII letter. */
export function isLetter(code: number): boolean {
  return code < 128 && CLASSES[code] === 2;
}

/** True for characters of words: letters, also beyond ASCII, digits and `_`. */
export function isWord(code: number): boolean {
  if (code >= 128) return code >= LETTERS_FROM && code < PUNCTUATION_FROM;
  return (CLASSES[code] ?? 0) !== 0 || code === 0x5f;
}
