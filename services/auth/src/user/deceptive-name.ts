// Deceptive names: bidirectional controls, invisible characters, look-alike letters.
import { mixesLookAlikes } from "@platform/kernel/names";

// Unicode TR 36 section 2.5: these reorder the characters around them.
const BIDI_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const INVISIBLE =
  /[\u00ad\u115f\u1160\u200b\u2028\u2029\u2060-\u2064\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|\u034f|\u17b4|\u17b5/;
const NOT_WORD = /[^\p{L}\p{M}\p{N}]+/u;

/** True for names with such characters or with a word that mixes look-alike scripts. */
export function isDeceptive(name: string): boolean {
  if (BIDI_CONTROLS.test(name) || INVISIBLE.test(name)) return true;
  return name.split(NOT_WORD).some(mixesLookAlikes);
}

/** The same for identifiers, which count as one word: `раypal.admin` is as deceptive as `раypal`. */
export function isDeceptiveIdentifier(name: string): boolean {
  return isDeceptive(name) || mixesLookAlikes(name);
}
