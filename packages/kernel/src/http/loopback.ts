// "Loopback only": whether a request comes from a program on this machine, and not from a web page or through a proxy.
import { isLoopback } from "../network/index.ts";
import type { Peer } from "./route.ts";

/** The verdict; `reason` is fit for the caller. */
export type LoopbackVerdict = { allowed: true } | { allowed: false; reason: string };

/** What is looked at. `getHeader` takes lower-case names. */
export interface LoopbackRequest {
  peer: Peer;
  getHeader: (name: string) => string | null | undefined;
}

const FORWARDING_HEADERS = [
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-forwarded-port",
  "x-forwarded-server",
  "x-real-ip",
  "x-client-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "via",
] as const;

/** Whether a Host or an URL's authority (`localhost:80`, `[::1]`, `127.0.0.1`) names this machine. */
export function isLoopbackHost(authority: string): boolean {
  const found = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::\d{1,5})?$/i.exec(authority);
  const name = (found?.[1] ?? found?.[2] ?? "").toLowerCase();
  return name === "localhost" || isLoopback(name);
}

/**
 * All of: the socket's peer is loopback (or a Unix socket), Host is loopback, no forwarding header is present, and a
 * browser, if it is one, says that the page is of the same origin. Host and origin keep DNS rebinding and foreign pages
 * out, the headers keep a neighbour behind a local proxy out.
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
 * Refuses what a browser sends on behalf of a foreign page: an Origin other than `host`, or a Sec-Fetch-Site other than
 * same-origin and none. Programs that send neither header pass.
 */
export function checkSameOrigin(
  host: string,
  getHeader: LoopbackRequest["getHeader"],
): LoopbackVerdict {
  const site = getHeader("sec-fetch-site");
  if (site && site !== "same-origin" && site !== "none")
    return refuse("the page is of another site");
  const origin = getHeader("origin");
  if (origin === null || origin === undefined) return { allowed: true };
  const url = URL.parse(origin);
  const isWeb = url?.protocol === "http:" || url?.protocol === "https:";
  const same = isWeb && url.host === (URL.parse(`${url.protocol}//${host}`)?.host ?? "");
  return same ? { allowed: true } : refuse("the page is of another origin");
}

function refuse(reason: string): LoopbackVerdict {
  return { allowed: false, reason };
}
