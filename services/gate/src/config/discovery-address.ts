// The address of service discovery.
import { isIP } from "node:net";
import { isServerName } from "../shared-state/index.ts";

/** The forms of the address, for messages. */
export const DISCOVERY_FORMS =
  '"dns+srv://DOMAIN", "dns+srv://DOMAIN?server=IP:port", or an http or https URL';

/** A server of DNS. */
export interface NameServer {
  /** An IP address. */
  host: string;
  port: number;
}

/** DNS records below a domain, or a document. */
export type DiscoveryAddress =
  | { kind: "dns"; domain: string; server: NameServer | undefined }
  | { kind: "http"; url: string };

const DNS = "dns+srv://";
const DNS_PORT = 53;

/** Parses the address; undefined if it is malformed. */
export function parseDiscovery(text: string): DiscoveryAddress | undefined {
  if (!text.toLowerCase().startsWith(DNS)) return parseDocument(text);
  const [place = "", query, ...more] = text.slice(DNS.length).split("?");
  const domain = place.toLowerCase().replace(/\.$/, "");
  if (!isServerName(domain) || more.length > 0) return undefined;
  if (query === undefined) return { kind: "dns", domain, server: undefined };
  if (!query.startsWith("server=")) return undefined;
  const server = parseNameServer(query.slice("server=".length));
  return server && { kind: "dns", domain, server };
}

/** Parses `IP`, `IPv4:port` or `[IPv6]:port`; undefined if it is malformed. */
export function parseNameServer(text: string): NameServer | undefined {
  if (isIP(text) !== 0) return { host: text, port: DNS_PORT };
  const at = text.lastIndexOf(":");
  const [host, digits] = [text.slice(0, at).replace(/^\[(.*)\]$/, "$1"), text.slice(at + 1)];
  const port = /^\d{1,5}$/.test(digits) ? Number(digits) : 0;
  const isBare = isIP(host) === 6 && !text.startsWith("[");
  return at < 0 || isIP(host) === 0 || isBare || port < 1 || port > 65_535
    ? undefined
    : { host, port };
}

function parseDocument(text: string): DiscoveryAddress | undefined {
  if (!/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text)) return undefined;
  const { username, password, hash } = new URL(text);
  return username === "" && password === "" && hash === ""
    ? { kind: "http", url: text }
    : undefined;
}
