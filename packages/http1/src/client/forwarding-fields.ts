// Fields that describe the client to an upstream: X-Forwarded-For, -Proto, -Port, -Host and Forwarded (RFC 7239).
import { findClientAddress, type AddressSet } from "@platform/kernel/network";
import { type FieldBlock, Known, type KnownField, type RequestHead } from "../parse/index.ts";

/** The properties of a client connection that the fields contain. */
export interface ForwardedConnection {
  readonly remoteAddress: string;
  readonly localPort: number;
  readonly secure: boolean;
}

/** Fields that are always removed from client requests. All but X-Forwarded-Prefix and X-Real-Ip are written again. */
export const FORWARDING_FIELDS: readonly string[] = [
  "X-Forwarded-For",
  "X-Forwarded-Proto",
  "X-Forwarded-Port",
  "X-Forwarded-Host",
  "X-Forwarded-Prefix",
  "X-Real-Ip",
  "Forwarded",
];

const NO_HOST = Buffer.alloc(0);

/**
 * The forwarding fields of one connection's requests. If the peer is not a trusted proxy, they depend only on the Host
 * field and are reused while it does not change.
 */
export class ForwardingFields {
  /** Client address of the current request. */
  clientAddress = "";
  /** Scheme and host with which the client sent the current request; the host may be empty. */
  proto: "http" | "https" = "http";
  host = "";
  /**
   * Whatever else upstreams receive about the address that the client asked: the scheme and the port, from a trusted proxy
   * also the Host field, which may differ from `host`, and what Forwarded says about them. A cache must keep responses apart by it.
   */
  origin = "";
  /** Field lines of the current request, each with its CRLF. */
  lines: Buffer = NO_HOST;
  #trusted: AddressSet | undefined;
  #isPeerTrusted = false;
  #host: Buffer = NO_HOST;

  /** Reads one request. A new `trusted` object (compared by identity) re-evaluates the peer. */
  read(connection: ForwardedConnection, head: RequestHead, trusted: AddressSet): void {
    const { fields } = head;
    const line = fields.first(Known.Host);
    const start = line === -1 ? 0 : fields.valueStart(line);
    const end = line === -1 ? 0 : fields.valueEnd(line);
    if (trusted !== this.#trusted) {
      this.#trusted = trusted;
      this.#isPeerTrusted = trusted.has(connection.remoteAddress);
    } else if (!this.#isPeerTrusted && isSameRange(fields.bytes, start, end, this.#host)) {
      return;
    }
    this.#host = Buffer.from(fields.bytes.subarray(start, end));
    const host = this.#host.toString("latin1");
    if (this.#isPeerTrusted) this.#extend(connection, fields, host, trusted);
    else this.#replace(connection, host);
  }

  #replace({ remoteAddress, localPort, secure }: ForwardedConnection, host: string): void {
    const proto = secure ? "https" : "http";
    this.clientAddress = remoteAddress;
    this.proto = proto;
    this.host = host;
    this.origin = `${proto} ${localPort}`;
    this.lines = layOutLines(
      remoteAddress,
      proto,
      String(localPort),
      host,
      formatForwarded(remoteAddress, host, proto),
    );
  }

  // Keeps the values of a trusted proxy and appends the proxy itself to the chain.
  #extend(
    { remoteAddress, localPort, secure }: ForwardedConnection,
    fields: FieldBlock,
    host: string,
    trusted: AddressSet,
  ): void {
    const chain = joinLines(fields, Known.XForwardedFor);
    const forwarded = joinLines(fields, Known.Forwarded);
    const sent = joinLines(fields, Known.XForwardedProto).toLowerCase();
    const proto = sent === "https" || sent === "http" ? sent : secure ? "https" : "http";
    const sentPort = /^\d{1,5}$/.exec(joinLines(fields, Known.XForwardedPort))?.[0];
    const port = sentPort ?? String(localPort);
    const ownForwarded = formatForwarded(remoteAddress, host, secure ? "https" : "http");
    this.clientAddress = findClientAddress(remoteAddress, chain, trusted);
    this.proto = proto;
    this.host = joinLines(fields, Known.XForwardedHost) || host;
    this.origin = `${proto} ${port} ${host.toLowerCase()}${withoutNodes(forwarded)}`;
    this.lines = layOutLines(
      chain === "" ? remoteAddress : `${chain}, ${remoteAddress}`,
      proto,
      port,
      this.host,
      forwarded === "" ? ownForwarded : `${forwarded}, ${ownForwarded}`,
    );
  }
}

/** The values of all lines of a field, joined by `, ` (RFC 9110 section 5.3); "" if the field is absent. */
export function joinLines(fields: FieldBlock, known: KnownField): string {
  let joined = "";
  for (let line = fields.first(known); line !== -1; line = fields.next(line)) {
    const value = fields.bytes.toString("latin1", fields.valueStart(line), fields.valueEnd(line));
    joined = joined === "" ? value : `${joined}, ${value}`;
  }
  return joined;
}

function layOutLines(
  chain: string,
  proto: string,
  port: string,
  host: string,
  forwarded: string,
): Buffer {
  const hostLine = host === "" ? "" : `X-Forwarded-Host: ${host}\r\n`;
  return Buffer.from(
    `X-Forwarded-For: ${chain}\r\nX-Forwarded-Proto: ${proto}\r\nX-Forwarded-Port: ${port}\r\n${hostLine}Forwarded: ${forwarded}\r\n`,
    "latin1",
  );
}

// RFC 7239 section 6: an IPv6 address is bracketed and quoted; a host may contain a colon and is always quoted.
function formatForwarded(address: string, host: string, proto: string): string {
  const node = address.includes(":") ? `"[${address}]"` : address === "" ? "unknown" : address;
  const isQuotable = host !== "" && !/["\\]/.test(host);
  return isQuotable ? `for=${node};host="${host}";proto=${proto}` : `for=${node};proto=${proto}`;
}

/** The value of Forwarded without the addresses of client and proxies, which differ for each client. */
function withoutNodes(forwarded: string): string {
  if (forwarded === "") return "";
  return ` ${forwarded.replaceAll(/(?<![^;,\s])(?:for|by)=(?:"[^"]*"|[^;,\s"]*)/gi, "")}`;
}

function isSameRange(bytes: Uint8Array, start: number, end: number, other: Uint8Array): boolean {
  if (end - start !== other.length) return false;
  for (let at = start; at < end; at++) if (bytes[at] !== other[at - start]) return false;
  return true;
}
