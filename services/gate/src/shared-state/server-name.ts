// Names that clients send in a TLS handshake (SNI), and that certificates are issued for.
import { isIP } from "node:net";

/** Longest DNS name in characters. */
export const SERVER_NAME_CHARS_MAX = 253;

const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** True for a lower-case DNS name without a final dot, with `*.` in front if `wildcards` are allowed. */
export function isServerName(name: string, wildcards = false): boolean {
  const rest = wildcards && name.startsWith("*.") ? name.slice(2) : name;
  if (rest.length > SERVER_NAME_CHARS_MAX || isIP(rest) !== 0) return false;
  return rest.split(".").every((label) => LABEL.test(label));
}
