// Short requests of the front itself to a service, and the rule by which its certificate is verified.
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { request as tlsRequest } from "node:https";
import { isLoopbackHost } from "@platform/kernel/http";
import { OWN_REQUEST } from "@platform/kernel/metrics";
import { createConsoleError } from "../errors.ts";

const ANSWER_BYTES_MAX = 65_536;

export interface TargetRequest {
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string;
  timeoutMs: number;
}

/** An answer with its whole body. */
export interface TargetAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/**
 * True if the certificate of a service must be valid for the host of its address. Services of this machine have
 * certificates for their public names, and what is sent to them does not leave the machine.
 */
export function isVerified({ host }: URL): boolean {
  return !isLoopbackHost(host);
}

/** Host of an address as `node:net` expects it, IPv6 without brackets. */
export function readHostname({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

/** Sends a request. Rejects with 502 `service_down` without a complete answer of at most 64 KiB in time. */
export async function askTarget(url: URL, options: TargetRequest): Promise<TargetAnswer> {
  const { method = "GET", headers = {}, body, timeoutMs } = options;
  const isTls = url.protocol === "https:";
  const { promise, resolve, reject } = Promise.withResolvers<TargetAnswer>();
  const outgoing = (isTls ? tlsRequest : httpRequest)({
    hostname: readHostname(url),
    port: url.port,
    path: `${url.pathname}${url.search}`,
    method,
    headers: {
      ...headers,
      ...OWN_REQUEST,
      ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
    },
    signal: AbortSignal.timeout(timeoutMs),
    ...(isTls ? { rejectUnauthorized: isVerified(url) } : {}),
  });
  const fail = (cause?: unknown): void => reject(createConsoleError("service_down", { cause }));
  outgoing.once("error", fail);
  outgoing.once("response", (incoming) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    incoming.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes > ANSWER_BYTES_MAX) incoming.destroy();
    });
    incoming.once("error", fail);
    incoming.once("close", () => fail());
    incoming.once("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text });
    });
  });
  outgoing.end(body);
  return promise;
}
