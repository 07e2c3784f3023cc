// One guarded HTTP call: the name is resolved once, every address checked, the connection made to a checked address.
import { lookup } from "node:dns/promises";
import { request as requestHttp, type IncomingMessage, type RequestOptions } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { createAddressPolicy, type AddressPolicy } from "./address-policy.ts";

/** Why a call was not made or has no answer. */
export type EgressErrorCode =
  /** Not an http or https URL, or one with credentials in it. */
  | "url_not_allowed"
  /** The host is, or resolves to, an address outside of what may be reached. */
  | "address_not_allowed"
  | "unresolvable"
  | "unreachable"
  | "timeout"
  /** The answer is longer than allowed. */
  | "answer_too_large"
  /** The answer is compressed, though nobody asked for that. */
  | "answer_encoded"
  /** As many calls as allowed are under way. */
  | "busy"
  /** The caller's own signal ended the call. */
  | "aborted";

/** A call that was refused or failed. The message names the host at most, never the whole URL. */
export class EgressError extends Error {
  readonly code: EgressErrorCode;
  constructor(code: EgressErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EgressError";
    this.code = code;
  }
}

/** One address of a name. */
export interface ResolvedAddress {
  address: string;
  family: number;
}

/** Finds all addresses of a name. */
export type ResolveHost = (host: string) => Promise<readonly ResolvedAddress[]>;

/** Bounds and openings. */
export interface EgressOptions {
  /** Networks beside the public ones that may be reached, in CIDR form. Default none. */
  allowedNetworks?: readonly string[];
  /** Time for the whole call, from resolving to the last byte, in ms. Default 5 000. */
  timeoutMs?: number;
  /** Length of an answer's body. Default 1 MiB. */
  answerBytesMax?: number;
  /** Calls under way at once; further ones fail as `busy`. Default 64. */
  callsMax?: number;
  /** Default: the system's resolver. */
  resolve?: ResolveHost;
}

/** What is sent. */
export interface EgressRequest {
  method?: string;
  headers?: Readonly<Record<string, string>> | Headers;
  body?: string | Uint8Array;
  signal?: AbortSignal | null;
}

/** Makes a call and returns the whole answer, redirects included: nobody follows them. Rejects with an EgressError. */
export type EgressFetch = (url: string | URL, request?: EgressRequest) => Promise<Response>;

/**
 * Makes the fetch for every URL that a user, client or document chose.
 *
 * The name is resolved once and the connection is pinned to what was found, so a name that changes its address between
 * check and use (DNS rebinding) gains nothing; one forbidden address among many refuses the call. Every call has its own
 * connection: one that was allowed before cannot serve a name that is not.
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
    if (calls >= callsMax) throw new EgressError("busy", `${callsMax} calls are under way`);
    calls += 1;
    const deadline = AbortSignal.timeout(timeoutMs);
    const signal = request.signal ? AbortSignal.any([deadline, request.signal]) : deadline;
    try {
      const addresses = await abortable(findAddresses(target, policy, resolve), signal);
      const answer = await send(target, addresses, request, signal);
      return await readAnswer(answer, answerBytesMax);
    } catch (error) {
      if (error instanceof EgressError) throw error;
      if (deadline.aborted) {
        throw new EgressError("timeout", `${target.host}: no answer within ${timeoutMs} ms`);
      }
      if (signal.aborted) throw new EgressError("aborted", `${target.host}: given up`);
      throw new EgressError("unreachable", `${target.host}: no answer`, { cause: error });
    } finally {
      calls -= 1;
    }
  };
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
    throw new EgressError("url_not_allowed", "a URL with credentials");
  }
  return target;
}

async function findAddresses(
  target: URL,
  policy: AddressPolicy,
  resolve: ResolveHost,
): Promise<readonly ResolvedAddress[]> {
  // The URL parser has made one form of the many that an IPv4 address may be written in.
  const host = target.hostname.replace(/^\[|\]$/g, "");
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
  if (!addresses.every(({ address }) => policy.isAllowed(address))) {
    throw new EgressError("address_not_allowed", `${host}: the address may not be reached`);
  }
  return addresses;
}

function send(
  target: URL,
  addresses: readonly ResolvedAddress[],
  request: EgressRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const pinned: LookupFunction = (_host, options, callback) => {
    if (options.all === true)
      callback(
        null,
        addresses.map((entry) => ({ ...entry })),
      );
    else callback(null, addresses[0]!.address, addresses[0]!.family);
  };
  const headers = Object.fromEntries(new Headers(request.headers));
  // A compressed answer could be a thousand times as long as its bytes.
  headers["accept-encoding"] = "identity";
  if (request.body !== undefined) {
    headers["content-length"] = String(Buffer.byteLength(request.body));
  }
  const options: RequestOptions = {
    method: request.method ?? "GET",
    headers,
    agent: false,
    lookup: pinned,
    signal,
  };
  return new Promise((resolve, reject) => {
    const outgoing =
      target.protocol === "https:" ? requestHttps(target, options) : requestHttp(target, options);
    outgoing.once("response", resolve).on("error", reject).end(request.body);
  });
}

async function readAnswer(answer: IncomingMessage, bytesMax: number): Promise<Response> {
  const encoding = answer.headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    answer.destroy();
    throw new EgressError("answer_encoded", `an answer in ${encoding.slice(0, 32)}`);
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > bytesMax) {
      answer.destroy();
      throw new EgressError("answer_too_large", `an answer of more than ${bytesMax} bytes`);
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

// A resolver cannot be cancelled: whoever waits for it can.
function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
