// The client's address: the first address of the forwarding chain that is not a trusted proxy.
import { readAddress, type AddressSet } from "./address-set.ts";
import { type ForwardedElement, parseForwarded } from "./forwarded.ts";

/** Maximum number of hops; longer chains of proxies do not occur in practice. */
const HOPS_MAX = 32;
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** The fields of a request about the proxies that it passed: all lines of each, joined by commas; "" if absent. */
export interface ForwardingHeaders {
  readonly forwardedFor: string;
  readonly forwarded: string;
  /** X-Forwarded-Proto, -Host and -Port. */
  readonly proto?: string;
  readonly host?: string;
  readonly port?: string;
}

/** An address of the chain, and the connection that it opened to the next one. */
export interface ForwardingHop {
  readonly address: string;
  /** Scheme and host as Forwarded states them, not validated. */
  readonly proto?: string;
  readonly host?: string;
}

/** The way of a request through trusted proxies. */
export interface ForwardingTrace {
  /** From the client to the peer, at least one. What the client itself has sent about others is not among them. */
  readonly hops: readonly [ForwardingHop, ...ForwardingHop[]];
  /** Scheme, host and port that the client asked, as its proxy states them; host and port are not validated. */
  readonly proto?: "http" | "https";
  readonly host?: string;
  readonly port?: string;
}

/**
 * Traces a request from its peer to the client: through the entries of X-Forwarded-For, or of Forwarded (RFC 7239) if it is
 * absent, from the right while the addresses are trusted, up to 32. Text that is not an address ends the trace.
 */
export function traceHops(
  peer: string,
  headers: ForwardingHeaders,
  trusted: AddressSet,
): ForwardingTrace {
  if (!trusted.has(peer)) return { hops: [{ address: peer }] };
  const { forwardedFor, forwarded } = headers;
  // A proxy that writes one of the two passes the other as the client has sent it: they are never mixed.
  const elements: readonly ForwardedElement[] =
    forwardedFor.trim() === ""
      ? parseForwarded(forwarded)
      : forwardedFor.split(",").map((text) => ({ node: text.trim() }));
  const hops: ForwardingHop[] = [{ address: peer }];
  const { length } = elements;
  let clientEntry = length - 1;
  for (let at = length - 1; at >= Math.max(0, length - HOPS_MAX); at--) {
    const { node = "", proto, host } = elements[at]!;
    const address = readHop(node);
    // The proxy that wrote the entry does not know, or hides, the address, but still says how it was asked.
    clientEntry = at;
    if (address === undefined) break;
    hops.unshift({
      address,
      ...(proto === undefined ? {} : { proto }),
      ...(host === undefined ? {} : { host }),
    });
    if (!trusted.has(address)) break;
  }
  const element = elements[clientEntry];
  const read = (value = ""): string | undefined => readStated(value, length, clientEntry);
  const proto = readProto(read(headers.proto)) ?? readProto(element?.proto);
  const host = read(headers.host) ?? element?.host;
  const port = read(headers.port);
  return {
    hops: hops as [ForwardingHop, ...ForwardingHop[]],
    ...(proto === undefined ? {} : { proto }),
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
  };
}

/** The scheme of HTTP; WebSockets have one of their own. Undefined for other text. */
export function readProto(text = ""): "http" | "https" | undefined {
  const proto = text.toLowerCase();
  if (proto === "https" || proto === "wss") return "https";
  return proto === "http" || proto === "ws" ? "http" : undefined;
}

/** The part of a list that is about the client: that of its proxy, or the only one, or the first. */
function readStated(value: string, entries: number, clientEntry: number): string | undefined {
  const list = value.split(",");
  const part = list.length === entries ? list[clientEntry] : list[0];
  return part?.trim() || undefined;
}

/**
 * Returns the client's address from the socket's peer, the value of X-Forwarded-For and that of Forwarded (all lines of
 * each, joined by commas); see {@link traceHops}.
 */
export function findClientAddress(
  peer: string,
  forwardedFor: string,
  trusted: AddressSet,
  forwarded = "",
): string {
  return traceHops(peer, { forwardedFor, forwarded }, trusted).hops[0].address;
}

// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
function readHop(text: string): string | undefined {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1];
  const address = bracketed ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  if (readAddress(address) === undefined) return undefined;
  // As sockets do: listeners for both versions report mapped addresses.
  return MAPPED.exec(address)?.[1] ?? address;
}
