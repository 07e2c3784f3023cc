// Addresses in a configuration: listening addresses (`[host]:port`, `host:port`, `:port`, `port`) and networks.
import { isIP } from "node:net";
import { z } from "zod";
import { isLoopback, isNetwork } from "../network/index.ts";

const HOST_NAME =
  /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*\.?$/i;
const NETWORK_CHARS_MAX = 64;

/** A listening address. */
export interface ListenAddress {
  /** Host name, or IP address without brackets; undefined means all interfaces. */
  host: string | undefined;
  /** 0 to 65535; with 0 the system chooses a free port. */
  port: number;
}

/** Accepted forms, for messages and documentation. */
export const ADDRESS_FORMS = '":8080", "8080", "host:8080" or "[::1]:8080"';

/** Parses an address; returns undefined if the text is invalid. IPv6 addresses need brackets. */
export function parseAddress(text: string): ListenAddress | undefined {
  const match = /^(?:(?:\[([^[\]]*)\]|([^:[\]]*)):)?([0-9]{1,5})$/.exec(text.trim());
  if (match === null) return undefined;
  const [, bracketed, plain, digits] = match;
  const port = Number(digits);
  if (port > 65_535) return undefined;
  if (bracketed !== undefined) {
    return bracketed === "" || isIP(bracketed) !== 0 || HOST_NAME.test(bracketed)
      ? { host: bracketed === "" ? undefined : bracketed, port }
      : undefined;
  }
  if (plain === undefined || plain === "") return { host: undefined, port };
  if (/^[0-9.]+$/.test(plain) && isIP(plain) === 0) return undefined;
  return HOST_NAME.test(plain) ? { host: plain, port } : undefined;
}

/** Formats an address as text that `parseAddress` accepts. */
export function formatAddress(address: ListenAddress): string {
  const { host, port } = address;
  if (host === undefined) return `:${port}`;
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

/** True if only this machine can connect to the address. Host names other than `localhost` do not count as loopback. */
export function isLoopbackAddress(address: ListenAddress): boolean {
  const host = address.host?.toLowerCase();
  if (host === undefined) return false;
  return host === "localhost" || isLoopback(host);
}

/** Schema of an IP address or a CIDR range. */
export function networkSchema() {
  return z.string().min(1).max(NETWORK_CHARS_MAX).refine(isNetwork, {
    error: 'expected an IP address or a CIDR range such as "10.0.0.0/8" or "fd00::/8"',
  });
}

/** Schema of an address: text in, ListenAddress out. Add `.default(":8080")` or `.optional()`. */
export function addressSchema() {
  return z.string().transform((text, context): ListenAddress => {
    const address = parseAddress(text);
    if (address !== undefined) return address;
    context.addIssue({ code: "custom", message: `expected an address such as ${ADDRESS_FORMS}` });
    return z.NEVER;
  });
}
