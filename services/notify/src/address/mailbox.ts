// Mailboxes of API requests: `ada@example.org` or `Ada <ada@example.org>`, in a strict subset of RFC 5322.
import { parseDomain } from "./domain.ts";

/** A mailbox. The domain is in A-label form; the local part keeps its case. */
export interface Mailbox {
  /** Display name; "" without one. */
  name: string;
  local: string;
  domain: string;
  /** `local@domain` */
  address: string;
}

/** A mailbox, or the reason why the text is none. */
export type MailboxResult = { ok: true; mailbox: Mailbox } | { ok: false; reason: string };

const CHARACTERS_MAX = 320;
const LOCAL_CHARACTERS_MAX = 64;
// RFC 5322 section 3.2.3, without comments, which parsers read differently.
const DOT_ATOM = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const ANGLE_FORM = /^(?:"((?:[^"\\]|\\["\\])*)"|([^"<>]*?))\s*<([^<>]*)>$/;
const CONTROL = /[\p{Cc}\u2028\u2029\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/u;
// RFC 5321 section 4.1.2, without @: parsers that do not know the form would read another domain.
const QUOTED_LOCAL = /^"((?:[ !#-?A-[\]-~]|\\[ -?A-~])+)"$/;

/**
 * Parses a mailbox. Everything that two parsers could read differently is rejected: comments in addresses, routes, groups,
 * lists, IP addresses, control characters, addresses inside display names, look-alike domains. Display names with commas
 * or brackets need no quotes: they are quoted when they are sent.
 */
export function parseMailbox(text: string): MailboxResult {
  if (text.length > CHARACTERS_MAX) return fail("the address is too long");
  if (CONTROL.test(text)) return fail("the address contains control or invisible characters");
  const trimmed = text.trim();
  const angle = ANGLE_FORM.exec(trimmed);
  if (angle === null) return parseAddress(trimmed, "");
  const [, quoted, plain, address = ""] = angle;
  const name = (quoted?.replaceAll(/\\(.)/g, "$1") ?? plain ?? "").trim();
  // "ceo@bank.example" <x@elsewhere.example> shows another sender than it has.
  if (/[@<>]/.test(name) && name !== address) return fail("the display name contains an address");
  if (name.includes("=?")) return fail("the display name contains an encoded word");
  return parseAddress(address, name === address ? "" : name);
}

/** Returns the canonical form of an address for comparisons: lower case, domain in A-label form. */
export function toAddressKey(address: string): string {
  return address.toLowerCase();
}

function parseAddress(text: string, name: string): MailboxResult {
  const at = text.lastIndexOf("@");
  if (at < 1 || at === text.length - 1) return fail("not an address of the form local@domain");
  const local = normalizeLocal(text.slice(0, at));
  if (/[^\u0020-\u007e]/.test(local)) {
    return fail("the local part must be ASCII: SMTPUTF8 is not supported");
  }
  if (local.length > LOCAL_CHARACTERS_MAX) return fail("the local part is too long");
  if (!DOT_ATOM.test(local) && !QUOTED_LOCAL.test(local))
    return fail("the local part contains characters that are not allowed");
  const found = parseDomain(text.slice(at + 1));
  if (!found.ok) return found;
  const { domain } = found;
  return { ok: true, mailbox: { name, local, domain, address: `${local}@${domain}` } };
}

/** Returns a local part without quotes that it does not need: `"ada"` is `ada` (RFC 5321 section 4.1.2). */
export function normalizeLocal(local: string): string {
  const plain = QUOTED_LOCAL.exec(local)?.[1]?.replaceAll(/\\(.)/g, "$1");
  if (plain === undefined) return local;
  return DOT_ATOM.test(plain) ? plain : `"${plain.replaceAll(/["\\]/g, "\\$&")}"`;
}

function fail(reason: string): MailboxResult {
  return { ok: false, reason };
}
