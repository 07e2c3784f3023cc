// Creates signatures of requests, presigned URLs, chunked bodies and form uploads.
import { createHash } from "node:crypto";
import {
  buildCanonicalRequest,
  buildStringToSign,
  canonicalizeQuery,
  encodeUri,
  hashHex,
  parseQuery,
} from "./canonical-request.ts";
import { signChunk, signTrailer } from "./chunk-signature.ts";
import { formatScope, type SigningKey, SigningKeyCache, type SigningScope } from "./signing-key.ts";
import { formatBasicTime } from "./timestamp.ts";

/** Keys of the day of the credentials that this process signs with. */
const KEYS = new SigningKeyCache(100);

/** The credentials of a signature. */
export interface SigningIdentity {
  accessKey: string;
  secret: string;
  region: string;
}

/** A request to sign. */
export interface UnsignedRequest {
  method: string;
  /** Path and query as they will be sent. */
  target: string;
  /** All headers to sign, including `host`, names in any case. */
  headers: Readonly<Record<string, string>>;
  /** Value of `x-amz-content-sha256`. */
  payloadHash: string;
  timeMs: number;
}

/** A signed request, from which signatures of chunks continue. */
export interface SignedHead {
  /** The given headers, with `x-amz-date`, `x-amz-content-sha256` and `authorization`. Names in lower case. */
  headers: Record<string, string>;
  signature: string;
  key: SigningKey;
  scope: SigningScope;
  timestamp: string;
}

/** Signs requests of `fetch` by their URL: the headers to send with a body, without `host`. */
export type UrlSigner = (
  method: string,
  url: URL,
  body: string | Uint8Array,
) => Record<string, string>;

/** Creates a signer for requests whose bodies are in memory. */
export function createUrlSigner(identity: SigningIdentity): UrlSigner {
  return (method, url, body) => {
    const { host: _host, ...headers } = signRequest(identity, {
      method,
      target: `${url.pathname}${url.search}`,
      headers: { host: url.host },
      payloadHash: hashHex(body),
      timeMs: Date.now(),
    }).headers;
    return headers;
  };
}

/** Signs a request in its Authorization header. A given `date` header, or the `x-store-` form of a header, is kept. */
export function signRequest(identity: SigningIdentity, request: UnsignedRequest): SignedHead {
  const timestamp = formatBasicTime(request.timeMs);
  const scope = { date: timestamp.slice(0, 8), region: identity.region, service: "s3" };
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) headers[name.toLowerCase()] = value;
  if (!("date" in headers) && !("x-store-date" in headers)) headers["x-amz-date"] ??= timestamp;
  if (!("x-store-content-sha256" in headers))
    headers["x-amz-content-sha256"] ??= request.payloadHash;
  const signedHeaders = Object.keys(headers).sort();
  const { path, query } = splitTarget(request.target);
  const canonical = buildCanonicalRequest({
    method: request.method,
    rawPath: path,
    query: canonicalizeQuery(parseQuery(query)),
    getField: (name) => headers[name],
    signedHeaders,
    payloadHash: request.payloadHash,
  });
  const key = findKey(identity, scope);
  const signature = key.sign(buildStringToSign(timestamp, formatScope(scope), canonical));
  headers["authorization"] =
    `AWS4-HMAC-SHA256 Credential=${identity.accessKey}/${formatScope(scope)},SignedHeaders=${signedHeaders.join(";")},Signature=${signature}`;
  return { headers, signature, key, scope, timestamp };
}

/** The target of a presigned URL: `target` with the parameters of the signature. */
export function presignTarget(
  identity: SigningIdentity,
  request: Omit<UnsignedRequest, "payloadHash"> & { expiresSeconds: number; payloadHash?: string },
): string {
  const timestamp = formatBasicTime(request.timeMs);
  const scope = { date: timestamp.slice(0, 8), region: identity.region, service: "s3" };
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const signedHeaders = Object.keys(headers).sort();
  const parameters = [
    ["X-Amz-Algorithm", "AWS4-HMAC-SHA256"],
    ["X-Amz-Credential", `${identity.accessKey}/${formatScope(scope)}`],
    ["X-Amz-Date", timestamp],
    ["X-Amz-Expires", String(request.expiresSeconds)],
    ["X-Amz-SignedHeaders", signedHeaders.join(";")],
  ]
    .map(([name, value]) => `${name}=${encodeUri(value!)}`)
    .join("&");
  const { path, query } = splitTarget(request.target);
  const whole = query === "" ? parameters : `${query}&${parameters}`;
  const canonical = buildCanonicalRequest({
    method: request.method,
    rawPath: path,
    query: canonicalizeQuery(parseQuery(whole)),
    getField: (name) => headers[name],
    signedHeaders,
    payloadHash: request.payloadHash ?? "UNSIGNED-PAYLOAD",
  });
  const key = findKey(identity, scope);
  const signature = key.sign(buildStringToSign(timestamp, formatScope(scope), canonical));
  return `${path}?${whole}&X-Amz-Signature=${signature}`;
}

/**
 * Encodes a body as aws-chunked: signed chunks if `head` is given, else unsigned ones; with `trailers` at the end (and
 * their signature).
 */
export function encodeAwsChunked(
  body: Buffer,
  chunkBytes: number,
  head: SignedHead | undefined,
  trailers?: readonly (readonly [name: string, value: string])[],
): Buffer {
  const pieces: Buffer[] = [];
  let previous = head?.signature ?? "";
  for (let at = 0; ; at += chunkBytes) {
    const chunk = body.subarray(at, at + chunkBytes);
    let line = chunk.length.toString(16);
    if (head !== undefined) {
      const hash = createHash("sha256").update(chunk).digest("hex");
      previous = signChunk({ ...head, signature: previous }, hash);
      line += `;chunk-signature=${previous}`;
    }
    pieces.push(Buffer.from(`${line}\r\n`), chunk);
    if (chunk.length === 0) break;
    pieces.push(Buffer.from("\r\n"));
  }
  if (trailers !== undefined) {
    const text = trailers.map(([name, value]) => `${name}:${value}`);
    pieces.push(Buffer.from(text.map((line) => `${line}\r\n`).join("")));
    if (head !== undefined) {
      const hash = hashHex(text.map((line) => `${line}\n`).join(""));
      const signature = signTrailer({ ...head, signature: previous }, hash);
      pieces.push(Buffer.from(`x-amz-trailer-signature:${signature}\r\n`));
    }
  }
  pieces.push(Buffer.from("\r\n"));
  return Buffer.concat(pieces);
}

/** The fields of a form upload that sign `policy`, a JSON document. */
export function signPolicy(
  identity: SigningIdentity,
  policy: string,
  timeMs: number,
): Record<string, string> {
  const timestamp = formatBasicTime(timeMs);
  const scope = { date: timestamp.slice(0, 8), region: identity.region, service: "s3" };
  const encoded = Buffer.from(policy).toString("base64");
  return {
    policy: encoded,
    "x-amz-algorithm": "AWS4-HMAC-SHA256",
    "x-amz-credential": `${identity.accessKey}/${formatScope(scope)}`,
    "x-amz-date": timestamp,
    "x-amz-signature": findKey(identity, scope).sign(encoded),
  };
}

function findKey({ accessKey, secret }: SigningIdentity, scope: SigningScope): SigningKey {
  return KEYS.get(`${accessKey}/${formatScope(scope)}`, accessKey, secret, scope);
}

function splitTarget(target: string): { path: string; query: string } {
  const at = target.indexOf("?");
  return at < 0
    ? { path: target, query: "" }
    : { path: target.slice(0, at), query: target.slice(at + 1) };
}
