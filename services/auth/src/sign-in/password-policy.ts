// The password policy: minimum length, and no common passwords.
import { dictionary } from "@zxcvbn-ts/language-common";

const CHARS_MIN = 8;
const CHARS_MAX = 128;

/** The most common passwords in lower case; shorter ones are rejected anyway. */
export const COMMON_PASSWORDS: ReadonlySet<string> = new Set(
  dictionary["passwords-common"].filter((password) => password.length >= CHARS_MIN),
);

/** Checks new passwords. The pages' script judges by the same rules (pages/assets/strength.js). */
export class PasswordPolicy {
  readonly #words: readonly string[];

  /**
   * `words` are names of the installation, which are easy to guess, alone or with digits and punctuation around them.
   */
  constructor(words: readonly string[]) {
    this.#words = words.map(keepLetters);
  }

  /**
   * The problem of a password; `undefined` if it is acceptable. `names` are the user's own, which a password must not
   * equal.
   */
  findProblem(password: string, names: readonly (string | undefined)[]): string | undefined {
    const prepared = password.normalize("NFKC");
    // Counted in code points, as NIST recommends.
    const { length } = Array.from(prepared);
    if (length < CHARS_MIN) return `at least ${CHARS_MIN} characters are required`;
    if (length > CHARS_MAX) return `at most ${CHARS_MAX} characters are allowed`;
    const folded = prepared.toLowerCase();
    if (COMMON_PASSWORDS.has(folded)) return "one of the most common passwords";
    const own = names.filter((name) => name !== undefined);
    if (own.some((name) => name.toLowerCase() === folded)) return "equals your name or address";
    const letters = keepLetters(folded);
    if (letters === "") return undefined;
    if (own.some((name) => keepLetters(name) === letters)) {
      return "too similar to your name or address";
    }
    return this.#words.includes(letters) ? "too similar to the name of this service" : undefined;
  }
}

function keepLetters(text: string): string {
  return text.toLowerCase().replaceAll(/[^\p{L}]/gu, "");
}
