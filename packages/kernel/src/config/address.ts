// Listening addresses in text: `[host]:port`, `host:port`, `:port`, `port`.
import { isIP } from "node:net";
import { z } from "zod";

const HOST_NAME =
  /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*\.?$/i;

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
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
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
