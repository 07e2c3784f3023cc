// Names people sign in with: which are allowed, and which are the same.

import { isDeceptiveIdentifier } from "./deceptive-name.ts";

/** Longest name, in characters after normalisation. */
const USERNAME_CHARS_MAX = 64;

const USERNAME_PATTERN = /^[\p{L}\p{N}][\p{L}\p{M}\p{N}._@+-]*$/u;
const EMAIL_PATTERN =
  /^[^\s@"(),:;<>[\\\]\p{C}]{1,64}@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/iu;

/** The name as it is kept: NFKC. Undefined where it is none. */
export function readUsername(text: string): string | undefined {
  if (text.length > 4 * USERNAME_CHARS_MAX) return undefined;
  const name = text.normalize("NFKC").trim();
  if (name.length > USERNAME_CHARS_MAX || !USERNAME_PATTERN.test(name)) return undefined;
  return isDeceptiveIdentifier(name) ? undefined : name;
}

/** What two names that count as the same have in common: NFKC and full case folding. */
export function foldUsername(name: string): string {
  // Upper and then lower case takes ß to ss and ς to σ, as case folding does and lower case alone does not.
  return name.normalize("NFKC").toUpperCase().toLowerCase().normalize("NFKC");
}

/** The address as it is kept; undefined where it is none. */
export function readEmail(text: string): string | undefined {
  const address = text.normalize("NFC").trim();
  return address.length <= 254 && EMAIL_PATTERN.test(address) ? address : undefined;
}

/** What two addresses that count as the same have in common. */
export function foldEmail(address: string): string {
  return address.toLowerCase();
}
