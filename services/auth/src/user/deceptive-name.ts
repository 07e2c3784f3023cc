// Deceptive names: bidirectional controls, invisible characters, look-alike letters.

// Unicode TR 36 section 2.5: these reorder the characters around them.
const BIDI_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const INVISIBLE =
  /[\u00ad\u115f\u1160\u200b\u2028\u2029\u2060-\u2064\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|\u034f|\u17b4|\u17b5/;
// Scripts with letters that look like those of another script in this list (Unicode TS 39, confusables). Other
// scripts mix legitimately: Han with Latin and with the Japanese and Korean scripts.
const LOOK_ALIKES = [
  /\p{Script=Latin}/u,
  /\p{Script=Cyrillic}/u,
  /\p{Script=Greek}/u,
  /\p{Script=Armenian}/u,
  /\p{Script=Cherokee}/u,
  /\p{Script=Coptic}/u,
  /\p{Script=Lisu}/u,
  /\p{Script=Deseret}/u,
];
const NOT_WORD = /[^\p{L}\p{M}\p{N}]+/u;

/** True for names with such characters or with a word that mixes look-alike scripts. */
export function isDeceptive(name: string): boolean {
  if (BIDI_CONTROLS.test(name) || INVISIBLE.test(name)) return true;
  return name.split(NOT_WORD).some(isMixed);
}

/** The same for identifiers, which count as one word: `раypal.admin` is as deceptive as `раypal`. */
export function isDeceptiveIdentifier(name: string): boolean {
  return isDeceptive(name) || isMixed(name);
}

function isMixed(text: string): boolean {
  return LOOK_ALIKES.filter((script) => script.test(text)).length > 1;
}
