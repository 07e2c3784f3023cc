// Formats of texts by their RFCs, each in linear time: host names, mailboxes, URIs.
import { isIP } from "node:net";
import { domainToASCII, domainToUnicode } from "node:url";

/** A label of letters, digits and hyphens (RFC 1123 section 2.1). */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;
const PCT = "%[0-9a-fA-F]{2}";
const UNRESERVED = "[\\w.~!$&'()*+,;=-]";
const PCHAR = `(?:[\\w.~!$&'()*+,;=:@-]|${PCT})`;
/** RFC 3986 appendix A; groups: authority, path with the rest. */
const URI = new RegExp(
  `^[a-zA-Z][a-zA-Z0-9+.-]*:(?://([^/?#]*))?((?:${PCHAR}|/)*)(?:\\?(?:${PCHAR}|[/?])*)?(?:#(?:${PCHAR}|[/?])*)?$`,
);
const AUTHORITY = new RegExp(
  `^(?:(?:${UNRESERVED}|:|${PCT})*@)?(?:\\[([^\\]]*)\\]|(?:${UNRESERVED}|${PCT})*)(?::\\d*)?$`,
);
const FUTURE_ADDRESS = new RegExp(`^v[0-9a-fA-F]+\\.(?:${UNRESERVED}|:)+$`);
/** The local part of a mailbox (RFC 5321 section 4.1.2). */
const DOT_STRING = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*$/;
const QUOTED_STRING = /^"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*"$/;
const LOCAL_CHARACTERS_MAX = 64;
const MAILBOX_CHARACTERS_MAX = 254;
const HOST_CHARACTERS_MAX = 253;

/** True for a host name (RFC 1123), whose labels may be A-labels (RFC 5890). */
export function isHostname(text: string): boolean {
  return text.length <= HOST_CHARACTERS_MAX && text.split(".").every(isLabel);
}

/** True for a mailbox (RFC 5321 section 4.1.2) of at most 254 characters. */
export function isMailbox(text: string): boolean {
  const at = text.lastIndexOf("@");
  if (at === -1 || text.length > MAILBOX_CHARACTERS_MAX) return false;
  const local = text.slice(0, at);
  const domain = text.slice(at + 1);
  if (local.length > LOCAL_CHARACTERS_MAX) return false;
  if (!DOT_STRING.test(local) && !QUOTED_STRING.test(local)) return false;
  const literal = /^\[(.*)\]$/.exec(domain)?.[1];
  if (literal === undefined) return isHostname(domain);
  return literal.startsWith("IPv6:") ? isIP(literal.slice(5)) === 6 : isIP(literal) === 4;
}

/** True for a URI with a scheme (RFC 3986); not for a relative reference or an IRI. */
export function isUri(text: string): boolean {
  const [found, authority, path = ""] = URI.exec(text) ?? [];
  if (found === undefined) return false;
  // Without an authority, `//` would begin one.
  if (authority === undefined) return !path.startsWith("//");
  if (path !== "" && !path.startsWith("/")) return false;
  const parts = AUTHORITY.exec(authority);
  const literal = parts?.[1];
  if (parts === null) return false;
  return literal === undefined || isIP(literal) === 6 || FUTURE_ADDRESS.test(literal);
}

function isLabel(label: string): boolean {
  if (!LABEL.test(label)) return false;
  if (label.slice(2, 4) !== "--") return true;
  // The only labels with these hyphens are A-labels (RFC 5891 section 4.2.3.1).
  const unicode = domainToUnicode(label);
  const isDecoded = unicode !== "" && unicode !== label.toLowerCase();
  return /^xn--/i.test(label) && isDecoded && domainToASCII(unicode) === label.toLowerCase();
}
