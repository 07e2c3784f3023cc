// Loopback-only access: detects requests of programs on this machine, as opposed to web pages and forwarded requests.
import { isLoopback } from "../network/index.ts";
import type { Peer } from "./route.ts";

/** The decision; `reason` may be sent to the caller. */
export type LoopbackVerdict = { allowed: true } | { allowed: false; reason: string };

/** The request. `getHeader` expects lower-case names. */
export interface LoopbackRequest {
  peer: Peer;
  getHeader: (name: string) => string | null | undefined;
}

/** Headers that a proxy adds: the standard ones (RFC 7239, RFC 9110, RFC 8586), and those of proxies in general use. */
export const FORWARDING_HEADERS = [
  "forwarded",
  "x-forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-forwarded-port",
  "x-forwarded-prefix",
  "x-forwarded-scheme",
  "x-forwarded-server",
  "x-original-forwarded-for",
  "x-original-host",
  "x-cluster-client-ip",
  "x-envoy-external-address",
  "x-real-ip",
  "x-client-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "cf-connecting-ipv6",
  "fastly-client-ip",
  "fly-client-ip",
  "cdn-loop",
  "via",
] as const;

/**
 * True if a Host header or a URL's authority (`localhost:80`, `[::1]`, `127.0.0.1`) is this machine. `localhost.` is:
 * resolvers do not look it up either (RFC 6761 section 6.3). Other names are not, whatever they resolve to.
 */
export function isLoopbackHost(authority: string): boolean {
  const found = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::\d{1,5})?$/i.exec(authority);
  const name = (found?.[1] ?? found?.[2] ?? "").toLowerCase();
  return name === "localhost" || name === "localhost." || isLoopback(name);
}

/**
 * Allows a request if all of these are true: the socket's peer is loopback (or a Unix socket), Host is loopback, there
 * is no forwarding header, and a browser's headers indicate the same origin. The checks of Host and origin exclude DNS
 * rebinding and foreign pages; the check of forwarding headers excludes clients of a local proxy.
 */
export function checkLoopback(request: LoopbackRequest): LoopbackVerdict {
  const { peer, getHeader } = request;
  const isLocal = peer.kind === "unix" || (peer.kind === "tcp" && isLoopback(peer.address));
  if (!isLocal) return refuse("the connection does not come from this machine");
  const host = getHeader("host") ?? "";
  if (!isLoopbackHost(host)) return refuse("the Host is not a loopback name");
  const forwarding = FORWARDING_HEADERS.find((name) => (getHeader(name) ?? null) !== null);
  if (forwarding !== undefined) return refuse(`the request was forwarded (${forwarding})`);
  return checkSameOrigin(host, getHeader);
}

/**
 * Rejects requests that a browser sends for a foreign page: with an Origin other than `host`, or a Sec-Fetch-Site other
 * than same-origin and none. Requests without these headers are allowed.
 */
export function checkSameOrigin(
  host: string,
  getHeader: LoopbackRequest["getHeader"],
): LoopbackVerdict {
  const site = getHeader("sec-fetch-site");
  if (site && site !== "same-origin" && site !== "none")
    return refuse("the page belongs to another site");
  const origin = getHeader("origin");
  if (origin === null || origin === undefined) return { allowed: true };
  const url = URL.parse(origin);
  const isWeb = url?.protocol === "http:" || url?.protocol === "https:";
  const same = isWeb && url.host === (URL.parse(`${url.protocol}//${host}`)?.host ?? "");
  return same ? { allowed: true } : refuse("the page belongs to another origin");
}

function refuse(reason: string): LoopbackVerdict {
  return { allowed: false, reason };
}
