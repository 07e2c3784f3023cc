// Requests to the gateway's listener on this machine: with TLS, its certificate is for public names.
import { once } from "node:events";
import { request, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { request as requestSecurely } from "node:https";

/** A request to the gateway. */
export interface GatewayRequest {
  method: string;
  /** With the query. */
  path: string;
  /** A `host` names the host for which the request is. */
  headers: OutgoingHttpHeaders;
  body: string;
  timeoutMs: number;
  /** Bytes of the answer's body that are read; the rest is left out. */
  bytesMax: number;
}

/** The answer of the gateway, or of a target behind it. */
export interface GatewayAnswer {
  status: number;
  headers: [name: string, value: string][];
  body: Buffer;
  /** True if the body is longer than the bound. */
  isCut: boolean;
}

/** Sends a request to the gateway at `url`. Rejects if it cannot be reached, or does not answer in time. */
export async function requestGateway(
  url: string,
  { method, path, headers, body, timeoutMs, bytesMax }: GatewayRequest,
): Promise<GatewayAnswer> {
  const place = new URL(url);
  const options = {
    hostname: place.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: place.port,
    // Not parsed as a part of an address: `//host` stays a path.
    path,
    method,
    agent: false as const,
    signal: AbortSignal.timeout(timeoutMs),
    headers,
  };
  // The port is that of the gateway which this platform runs.
  const sent =
    place.protocol === "https:"
      ? requestSecurely({ ...options, ...nameServer(headers.host), rejectUnauthorized: false })
      : request(options);
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  const { body: received, isCut } = await readBounded(answer, bytesMax);
  const { rawHeaders, statusCode = 0 } = answer;
  const pairs = rawHeaders.flatMap((name, index): [string, string][] =>
    index % 2 === 0 ? [[name.toLowerCase(), rawHeaders[index + 1] ?? ""]] : [],
  );
  return { status: statusCode, headers: pairs, body: received, isCut };
}

// An address is no name of a server (RFC 6066 section 3).
function nameServer(host: unknown): { servername?: string } {
  const name = typeof host === "string" ? host.replace(/:\d+$/, "") : "";
  return /[a-z]/i.test(name) && !name.startsWith("[") ? { servername: name } : {};
}

async function readBounded(
  answer: IncomingMessage,
  bytesMax: number,
): Promise<{ body: Buffer; isCut: boolean }> {
  const parts: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop ends the connection.
  for await (const part of answer as AsyncIterable<Buffer>) {
    parts.push(part);
    bytes += part.length;
    if (bytes > bytesMax) break;
  }
  return { body: Buffer.concat(parts).subarray(0, bytesMax), isCut: bytes > bytesMax };
}
