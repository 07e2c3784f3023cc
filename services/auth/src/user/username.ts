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
  const name = normalizeUsername(text);
  if (name.length > USERNAME_CHARS_MAX || !USERNAME_PATTERN.test(name)) return undefined;
  return isDeceptiveIdentifier(name) ? undefined : name;
}

/** The comparison key of a name, stored or typed: the stored form with full case folding. */
export function foldUsername(name: string): string {
  // Upper case followed by lower case maps ß to ss and ς to σ, as case folding does and lower case alone does not.
  return normalizeUsername(name).toUpperCase().toLowerCase().normalize("NFKC");
}

// Keyboards of telephones add a blank after a name that they complete.
function normalizeUsername(text: string): string {
  return text.normalize("NFKC").trim();
}

/** The stored form of an address; `undefined` if it is invalid. */
export function readEmail(text: string): string | undefined {
  const address = normalizeEmail(text);
  return address.length <= 254 && EMAIL_PATTERN.test(address) ? address : undefined;
}

/** The comparison key of an address, stored or typed. */
export function foldEmail(address: string): string {
  return normalizeEmail(address).toLowerCase();
}

function normalizeEmail(text: string): string {
  return text.normalize("NFC").trim();
}
