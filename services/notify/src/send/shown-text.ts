// Texts that programs show beside facts of a message: characters are refused that make them look like other texts.

const CONTROL = /[\p{Cc}\u2028\u2029]/u;
// They reverse what follows: `invoice` U+202E `fdp.exe` reads as a PDF (Unicode UAX #9 section 2, UTR #36 section 2.5).
const BIDI_CONTROL = /\p{Bidi_Control}/u;
// Invisible, but part of the name. The joiners U+200C and U+200D remain: Persian, Hindi and emoji need them.
const INVISIBLE = /(?![\u200c\u200d])[\p{Cf}\p{Cs}\u115f\u1160\u17b4\u17b5\u3164\uffa0]/u;
// A row of blanks moves the end of a name out of sight.
const BLANKS = /[\p{Zs}\u2800]{4}/u;
const SEPARATOR = /[/\\]/;

/** Returns the reason why a text cannot be a subject; undefined if it can. */
export function findSubjectFault(subject: string): string | undefined {
  if (CONTROL.test(subject)) return "contains control characters or line breaks";
  if (BIDI_CONTROL.test(subject)) return "contains characters that change the direction of text";
  return undefined;
}

/** Returns the reason why a text cannot be the name of an attachment; undefined if it can. */
export function findFilenameFault(filename: string): string | undefined {
  if (CONTROL.test(filename) || SEPARATOR.test(filename)) {
    return "contains a path separator or control characters";
  }
  if (BIDI_CONTROL.test(filename)) return "contains characters that change the direction of text";
  if (INVISIBLE.test(filename)) return "contains invisible characters";
  if (BLANKS.test(filename)) return "contains more than three successive blanks";
  return undefined;
}
