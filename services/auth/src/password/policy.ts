// Which passwords are accepted: long enough, and not among those that are tried first.
import { dictionary } from "@zxcvbn-ts/language-common";

const charsMin = 8;
const charsMax = 128;

/** Says what is wrong with a new password; undefined when nothing is. */
export class PasswordPolicy {
  // Those that are too short are refused anyway.
  readonly #common = new Set(
    dictionary["passwords-common"].filter((password) => password.length >= charsMin),
  );

  /** `names` are the user's own, which a password must not be. */
  findProblem(password: string, names: readonly (string | undefined)[]): string | undefined {
    const prepared = password.normalize("NFKC");
    // Counted as NIST does, by code points.
    const { length } = Array.from(prepared);
    if (length < charsMin) return `at least ${charsMin} characters are needed`;
    if (length > charsMax) return `at most ${charsMax} characters are allowed`;
    const folded = prepared.toLowerCase();
    if (this.#common.has(folded)) return "it is one of the most common passwords";
    if (names.some((name) => name !== undefined && name.toLowerCase() === folded)) {
      return "it is your name or address";
    }
    return undefined;
  }
}
