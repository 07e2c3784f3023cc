// Usernames and email addresses: valid forms and normalisation.

import { isDeceptiveIdentifier } from "./deceptive-name.ts";

/** Maximum length in characters after normalisation. */
const USERNAME_CHARS_MAX = 64;

const USERNAME_PATTERN = /^[\p{L}\p{N}][\p{L}\p{M}\p{N}._@+-]*$/u;
const EMAIL_PATTERN =
  /^[^\s@"(),:;<>[\\\]\p{C}]{1,64}@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/iu;

/** The stored form of a name (NFKC); `undefined` if the name is invalid. */
export function readUsername(text: string): string | undefined {
  if (text.length > 4 * USERNAME_CHARS_MAX) return undefined;
  const name = text.normalize("NFKC").trim();
  if (name.length > USERNAME_CHARS_MAX || !USERNAME_PATTERN.test(name)) return undefined;
  return isDeceptiveIdentifier(name) ? undefined : name;
}

/** The comparison key of a name: NFKC and full case folding. */
export function foldUsername(name: string): string {
  // Upper case followed by lower case maps ß to ss and ς to σ, as case folding does and lower case alone does not.
  return name.normalize("NFKC").toUpperCase().toLowerCase().normalize("NFKC");
}

/** The stored form of an address; `undefined` if it is invalid. */
export function readEmail(text: string): string | undefined {
  const address = text.normalize("NFC").trim();
  return address.length <= 254 && EMAIL_PATTERN.test(address) ? address : undefined;
}

/** The comparison key of an address. */
export function foldEmail(address: string): string {
  return address.toLowerCase();
}
