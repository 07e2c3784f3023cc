// Guarded outgoing HTTP requests: the host name is resolved once, all addresses are checked, and the connection uses a
// checked address.
import { lookup } from "node:dns/promises";
import type { IncomingMessage, RequestOptions } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { createAddressPolicy, type AddressPolicy } from "./address-policy.ts";

// An import reads all exports, of which WebSocket loads undici: 25 ms of each start of a thread.
const { request: requestHttp } = process.getBuiltinModule("node:http");

/** Reasons why a request failed. */
export type EgressErrorCode =
  /** Not an http or https URL, or a URL with credentials. */
  | "url_not_allowed"
  /** The host is, or resolves to, a forbidden address. */
  | "address_not_allowed"
  | "unresolvable"
  | "unreachable"
  | "timeout"
  /** The response exceeds the maximum size. */
  | "answer_too_large"
  /** The response is compressed, although `Accept-Encoding: identity` was sent. */
  | "answer_encoded"
  /** Too many requests are in flight. */
  | "busy"
  /** The caller's signal aborted the request. */
  | "aborted";

/** A rejected or failed request. The message contains at most the host, never the whole URL. */
export class EgressError extends Error {
  readonly code: EgressErrorCode;
  constructor(code: EgressErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EgressError";
    this.code = code;
  }
}

/** An address of a host name. */
interface ResolvedAddress {
  address: string;
  family: number;
}

/** Resolves all addresses of a host name. */
type ResolveHost = (host: string) => Promise<readonly ResolvedAddress[]>;

/** Options of {@link createEgressGuard}. */
export interface EgressGuardOptions {
  /** Allowed networks in addition to public addresses, in CIDR form. Default: empty. */
  allowedNetworks?: readonly string[];
  /** Default: the system's resolver. */
  resolve?: ResolveHost;
}

/** Checks the addresses of connections that keep-alive agents open. */
export interface EgressGuard {
  /** For requests and agents of `node:http`: fails with an EgressError if any address of the host is forbidden. */
  lookup: LookupFunction;
  /** Throws an EgressError if the host of a URL is a forbidden address: no lookup precedes connections to addresses. */
  checkHost: (hostname: string) => void;
}

/** Options of {@link createEgress}. */
export interface EgressOptions extends EgressGuardOptions {
  /** Timeout of a request, from resolution to the last byte, in ms. Default 5 000. */
  timeoutMs?: number;
  /** Maximum size of a response body in bytes. Default 1 MiB. */
  answerBytesMax?: number;
  /** Maximum number of requests in flight; further ones fail with `busy`. Default 64. */
  callsMax?: number;
  /** Trusted certificate authorities in PEM. Default: those of Node. */
  ca?: readonly string[] | undefined;
}

interface EgressRequest {
  method?: string;
  headers?: Readonly<Record<string, string>> | Headers;
  body?: string | Uint8Array;
  signal?: AbortSignal | null;
}

/**
 * Sends a request and returns the complete response. Redirects are returned, not followed. Rejects with an EgressError.
 */
export type EgressFetch = (url: string | URL, request?: EgressRequest) => Promise<Response>;

/**
 * Creates a fetch function for URLs supplied by users, clients or documents.
 *
 * The host name is resolved once and the connection uses the resolved address, so changing the DNS record between check
 * and use (DNS rebinding) has no effect. One forbidden address among several rejects the request. Each request uses a
 * new connection: a connection to an allowed host cannot be reused for another name.
 */
export function createEgress(options: EgressOptions = {}): EgressFetch {
  const {
    timeoutMs = 5_000,
    answerBytesMax = 1_048_576,
    callsMax = 64,
    resolve = (host) => lookup(host, { all: true }),
  } = options;
  const policy = createAddressPolicy(options.allowedNetworks);
  let calls = 0;
  return async (url, request = {}) => {
    const target = parseTarget(url);
    if (calls >= callsMax) throw new EgressError("busy", `${callsMax} requests are in flight`);
    calls += 1;
    const deadline = AbortSignal.timeout(timeoutMs);
    const signal = request.signal ? AbortSignal.any([deadline, request.signal]) : deadline;
    try {
      const addresses = await abortable(findAddresses(target.hostname, policy, resolve), signal);
      const answer = await send({ target, addresses, request, signal, ca: options.ca });
      return await readAnswer(answer, answerBytesMax);
    } catch (error) {
      if (error instanceof EgressError) throw error;
      if (deadline.aborted) {
        throw new EgressError("timeout", `${target.host}: no response within ${timeoutMs} ms`);
      }
      if (signal.aborted) throw new EgressError("aborted", `${target.host}: aborted`);
      const reason = describeCertificate(error) ?? "no response";
      throw new EgressError("unreachable", `${target.host}: ${reason}`, { cause: error });
    } finally {
      calls -= 1;
    }
  };
}

/**
 * Creates a guard for an agent with keep-alive connections to URLs supplied by users. Agents reuse a connection only for
 * the same host and port, so each host's addresses are checked with every new connection.
 */
export function createEgressGuard({
  allowedNetworks,
  resolve = (host) => lookup(host, { all: true }),
}: EgressGuardOptions = {}): EgressGuard {
  const policy = createAddressPolicy(allowedNetworks);
  const look = async (...[host, options, callback]: Parameters<LookupFunction>): Promise<void> => {
    let addresses: readonly ResolvedAddress[];
    try {
      addresses = await findAddresses(host, policy, resolve);
    } catch (error) {
      callback(error as EgressError, "", 0);
      return;
    }
    pin(addresses)(host, options, callback);
  };
  return {
    lookup: (...parameters) => void look(...parameters),
    checkHost(hostname) {
      const host = trimBrackets(hostname);
      if (isIP(host) !== 0) requireAllowed(host, [{ address: host, family: isIP(host) }], policy);
    },
  };
}

// The reason of an untrusted certificate, by the codes of Node and OpenSSL; undefined for other errors.
function describeCertificate(error: unknown): string | undefined {
  const { code } = error as NodeJS.ErrnoException;
  const isOfCertificate = code !== undefined && /CERT|LEAF_SIGNATURE/.test(code);
  return isOfCertificate ? `its certificate is not trusted (${code})` : undefined;
}

function parseTarget(url: string | URL): URL {
  let target: URL;
  try {
    target = new URL(url);
  } catch (error) {
    throw new EgressError("url_not_allowed", "not a URL", { cause: error });
  }
  if (target.protocol !== "https:" && target.protocol !== "http:") {
    throw new EgressError("url_not_allowed", `not an http or https URL: ${target.protocol}`);
  }
  if (target.username !== "" || target.password !== "") {
    throw new EgressError("url_not_allowed", "the URL contains credentials");
  }
  return target;
}

async function findAddresses(
  hostname: string,
  policy: AddressPolicy,
  resolve: ResolveHost,
): Promise<readonly ResolvedAddress[]> {
  const host = trimBrackets(hostname);
  const family = isIP(host);
  let addresses: readonly ResolvedAddress[] = [{ address: host, family }];
  if (family === 0) {
    try {
      addresses = await resolve(host);
    } catch (error) {
      throw new EgressError("unresolvable", `${host}: no address found`, { cause: error });
    }
  }
  if (addresses.length === 0) throw new EgressError("unresolvable", `${host}: no address found`);
  requireAllowed(host, addresses, policy);
  return addresses;
}

// The URL parser has normalized the notation of IPv4 addresses.
function trimBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "");
}

function requireAllowed(
  host: string,
  addresses: readonly ResolvedAddress[],
  policy: AddressPolicy,
): void {
  if (addresses.every(({ address }) => policy.isAllowed(address))) return;
  throw new EgressError("address_not_allowed", `${host}: the address is not allowed`);
}

function pin(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_host, options, callback) => {
    if (options.all === true) {
      callback(
        null,
        addresses.map((entry) => ({ ...entry })),
      );
    } else callback(null, addresses[0]!.address, addresses[0]!.family);
  };
}

interface Outgoing {
  target: URL;
  addresses: readonly ResolvedAddress[];
  request: EgressRequest;
  signal: AbortSignal;
  ca: readonly string[] | undefined;
}

function send({ target, addresses, request, signal, ca }: Outgoing): Promise<IncomingMessage> {
  const headers = Object.fromEntries(new Headers(request.headers));
  // A compressed response could expand a thousandfold.
  headers["accept-encoding"] = "identity";
  if (request.body !== undefined) {
    headers["content-length"] = String(Buffer.byteLength(request.body));
  }
  const options: RequestOptions = {
    method: request.method ?? "GET",
    headers,
    agent: false,
    lookup: pin(addresses),
    signal,
  };
  return new Promise((resolve, reject) => {
    const outgoing =
      target.protocol === "https:"
        ? requestHttps(target, ca === undefined ? options : { ...options, ca: [...ca] })
        : requestHttp(target, options);
    outgoing.once("response", resolve).on("error", reject).end(request.body);
  });
}

async function readAnswer(answer: IncomingMessage, bytesMax: number): Promise<Response> {
  const encoding = answer.headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    answer.destroy();
    throw new EgressError("answer_encoded", `compressed response: ${encoding.slice(0, 32)}`);
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > bytesMax) {
      answer.destroy();
      throw new EgressError("answer_too_large", `the response exceeds ${bytesMax} bytes`);
    }
    chunks.push(chunk);
  }
  const headers = new Headers();
  for (const [name, values] of Object.entries(answer.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  const status = answer.statusCode ?? 502;
  const body = status === 204 || status === 205 || status === 304 ? null : Buffer.concat(chunks);
  return new Response(body, { status, headers });
}

// DNS resolution cannot be cancelled, only the wait for it.
function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
