// Which passwords are accepted: long enough, and not among those that are tried first.
import { dictionary } from "@zxcvbn-ts/language-common";

const CHARS_MIN = 8;
const CHARS_MAX = 128;

/** Says what is wrong with a new password; undefined when nothing is. */
export class PasswordPolicy {
  readonly #words: readonly string[];

  // Those that are too short are refused anyway.
  readonly #common = new Set(
    dictionary["passwords-common"].filter((password) => password.length >= CHARS_MIN),
  );

  /** `words` are the installation's own, such as its name: too easy to guess, alone or with digits and signs around. */
  constructor(words: readonly string[]) {
    this.#words = words.map(keepLetters);
  }

  /** `names` are the user's own, which a password must not be either. */
  findProblem(password: string, names: readonly (string | undefined)[]): string | undefined {
    const prepared = password.normalize("NFKC");
    // Counted as NIST does, by code points.
    const { length } = Array.from(prepared);
    if (length < CHARS_MIN) return `at least ${CHARS_MIN} characters are needed`;
    if (length > CHARS_MAX) return `at most ${CHARS_MAX} characters are allowed`;
    const folded = prepared.toLowerCase();
    if (this.#common.has(folded)) return "it is one of the most common passwords";
    const own = names.filter((name) => name !== undefined);
    if (own.some((name) => name.toLowerCase() === folded)) return "it is your name or address";
    const letters = keepLetters(folded);
    if (letters === "") return undefined;
    if (own.some((name) => keepLetters(name) === letters)) {
      return "it is little more than your name or address";
    }
    return this.#words.includes(letters)
      ? "it is little more than the name of this service"
      : undefined;
  }
}

function keepLetters(text: string): string {
  return text.toLowerCase().replaceAll(/[^\p{L}]/gu, "");
}
