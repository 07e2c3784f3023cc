// The password policy: minimum length, and no common passwords.
import { dictionary } from "@zxcvbn-ts/language-common";
import type { Fault } from "@platform/kernel/errors";

const CHARS_MIN = 8;
const CHARS_MAX = 128;

/** The most common passwords in lower case; shorter ones are rejected anyway. */
export const COMMON_PASSWORDS: ReadonlySet<string> = new Set(
  dictionary["passwords-common"].filter((password) => password.length >= CHARS_MIN),
);

/** A reason to reject a password. */
interface PasswordProblem extends Fault {
  message: string;
}

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
  findProblem(
    password: string,
    names: readonly (string | undefined)[],
  ): PasswordProblem | undefined {
    const prepared = password.normalize("NFKC");
    // Counted in code points, as NIST recommends.
    const { length } = Array.from(prepared);
    if (length < CHARS_MIN) {
      const message = `at least ${CHARS_MIN} characters are required`;
      return { message, code: "too_short", params: { min: CHARS_MIN } };
    }
    if (length > CHARS_MAX) {
      const message = `at most ${CHARS_MAX} characters are allowed`;
      return { message, code: "too_long", params: { max: CHARS_MAX } };
    }
    const folded = prepared.toLowerCase();
    if (COMMON_PASSWORDS.has(folded)) {
      return { message: "one of the most common passwords", code: "password_common" };
    }
    const own = names.filter((name) => name !== undefined);
    if (own.some((name) => name.toLowerCase() === folded)) {
      return { message: "equals your name or address", code: "password_like_name" };
    }
    const letters = keepLetters(folded);
    if (letters === "") return undefined;
    if (own.some((name) => keepLetters(name) === letters)) {
      return { message: "too similar to your name or address", code: "password_like_name" };
    }
    if (!this.#words.includes(letters)) return undefined;
    return { message: "too similar to the name of this service", code: "password_like_service" };
  }
}

function keepLetters(text: string): string {
  return text.toLowerCase().replaceAll(/[^\p{L}]/gu, "");
}
