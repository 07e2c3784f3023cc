// Names that clients send in a TLS handshake (SNI), and that certificates are issued for.
import { isIP } from "node:net";
import { text } from "./value.ts";

const NAME_CHARS_MAX = 253;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** True for a lower-case DNS name without a final dot, with `*.` in front if `wildcards` are allowed. */
export function isServerName(name: string, wildcards = false): boolean {
  const rest = wildcards && name.startsWith("*.") ? name.slice(2) : name;
  if (rest.length > NAME_CHARS_MAX || isIP(rest) !== 0) return false;
  return rest.split(".").every((label) => LABEL.test(label));
}

/** A DNS name or a wildcard of one label (`*.example.org`); the result is lower-case. */
export function serverName() {
  return text(NAME_CHARS_MAX + 2)
    .overwrite((value) => value.toLowerCase().replace(/\.$/, ""))
    .refine((value) => isServerName(value, true), {
      error: 'expected a DNS name such as "api.example.org", or a wildcard such as "*.example.org"',
    });
}
