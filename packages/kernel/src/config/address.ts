// Addresses in a configuration: to listen on (`[host]:port`, `host:port`, `:port`, `port`), and networks.
import { isIP } from "node:net";
import { z } from "zod";
import { isLoopback, isNetwork } from "../network/index.ts";

const HOST_NAME =
  /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*\.?$/i;
const NETWORK_CHARS_MAX = 64;

/** Where a listener listens. */
export interface ListenAddress {
  /** A name or an address without brackets; undefined stands for every interface. */
  host: string | undefined;
  /** 0 to 65535; 0 lets the system choose. */
  port: number;
}

/** What the parser accepts, for messages and documentation. */
export const ADDRESS_FORMS = '":8080", "8080", "host:8080" or "[::1]:8080"';

/** Reads an address; undefined when the text is none. IPv6 addresses need their brackets. */
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

/** The address as text that `parseAddress` reads back. */
export function formatAddress(address: ListenAddress): string {
  const { host, port } = address;
  if (host === undefined) return `:${port}`;
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Whether only this machine can reach the address. A name other than `localhost` is not taken for loopback. */
export function isLoopbackAddress(address: ListenAddress): boolean {
  const host = address.host?.toLowerCase();
  if (host === undefined) return false;
  return host === "localhost" || isLoopback(host);
}

/** A configuration value that is an IP address or a range of them in CIDR form. */
export function networkSchema() {
  return z.string().min(1).max(NETWORK_CHARS_MAX).refine(isNetwork, {
    error: 'expected an IP address or a CIDR range such as "10.0.0.0/8" or "fd00::/8"',
  });
}

/** A configuration value that is an address: text in, ListenAddress out. Add `.default(":8080")` or `.optional()`. */
export function addressSchema() {
  return z.string().transform((text, context): ListenAddress => {
    const address = parseAddress(text);
    if (address !== undefined) return address;
    context.addIssue({ code: "custom", message: `expected an address such as ${ADDRESS_FORMS}` });
    return z.NEVER;
  });
}
