// Fields that describe the client to an upstream: X-Forwarded-For, -Proto, -Port, -Host and Forwarded (RFC 7239).
import { type AddressSet, readProto, traceHops } from "@platform/kernel/network";
import {
  type FieldBlock,
  isAuthority,
  Known,
  type KnownField,
  type RequestHead,
} from "../parse/index.ts";

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
   * also the Host field, which may differ from `host`, and those of proxies before it. A cache must keep responses apart by it.
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
      formatElement({ address: remoteAddress, host, proto }),
    );
  }

  // Both forms are written from one chain: what a trusted proxy states in either, and the proxy itself at the end.
  #extend(
    connection: ForwardedConnection,
    fields: FieldBlock,
    host: string,
    trusted: AddressSet,
  ): void {
    const { remoteAddress, localPort, secure } = connection;
    const join = (known: KnownField): string => joinLines(fields, known);
    const sent = {
      forwardedFor: join(Known.XForwardedFor),
      forwarded: join(Known.Forwarded),
      proto: join(Known.XForwardedProto),
      host: join(Known.XForwardedHost),
      port: join(Known.XForwardedPort),
    };
    const stated = traceHops(remoteAddress, sent, trusted);
    const [client, ...proxies] = stated.hops;
    const own = secure ? "https" : "http";
    const statedHost = readHost(stated.host);
    const statedPort = /^\d{1,5}$/.exec(stated.port ?? "")?.[0];
    this.clientAddress = client.address;
    this.proto = stated.proto ?? own;
    this.host = statedHost ?? host;
    const shownPort = statedPort ?? choosePort(stated.proto, statedHost, localPort);
    const elements = [
      { address: client.address, proto: this.proto, host: this.host },
      ...proxies.map((hop, index) =>
        index === proxies.length - 1
          ? { address: hop.address, proto: own, host }
          : { address: hop.address, proto: readProto(hop.proto), host: readHost(hop.host) },
      ),
    ];
    const between = elements.slice(1, -1).map((hop) => ` ${hop.proto ?? ""} ${hop.host ?? ""}`);
    this.origin = `${this.proto} ${shownPort} ${host.toLowerCase()}${between.join("")}`;
    this.lines = layOutLines(
      elements.map(({ address }) => address).join(", "),
      this.proto,
      shownPort,
      this.host,
      elements.map(formatElement).join(", "),
    );
  }
}

function readHost(text = ""): string | undefined {
  const bytes = Buffer.from(text, "latin1");
  return isAuthority(bytes, 0, bytes.length) ? text : undefined;
}

/** The port of the address that the client asked; that of this listener unless proxies state scheme and host. */
function choosePort(
  proto: "http" | "https" | undefined,
  host: string | undefined,
  localPort: number,
): string {
  if (proto === undefined || host === undefined) return String(localPort);
  return /:(\d+)$/.exec(host)?.[1] ?? (proto === "https" ? "443" : "80");
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

interface Element {
  address: string;
  proto: string | undefined;
  host: string | undefined;
}

// RFC 7239 section 6: an IPv6 address is bracketed and quoted; a host may contain a colon and is always quoted.
function formatElement({ address, proto, host = "" }: Element): string {
  const node = address.includes(":") ? `"[${address}]"` : address === "" ? "unknown" : address;
  const isQuotable = host !== "" && !/["\\]/.test(host);
  const hostPart = isQuotable ? `;host="${host}"` : "";
  return `for=${node}${hostPart}${proto === undefined ? "" : `;proto=${proto}`}`;
}

function isSameRange(bytes: Uint8Array, start: number, end: number, other: Uint8Array): boolean {
  if (end - start !== other.length) return false;
  for (let at = start; at < end; at++) if (bytes[at] !== other[at - start]) return false;
  return true;
}
