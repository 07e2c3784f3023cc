// Signature Version 4 by the published specification, independent of the store's implementation.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
import { createHash, createHmac } from "node:crypto";

/** An access key. */
export interface Credentials {
  accessKey: string;
  secretKey: string;
}

/** Input of a signature. */
export interface Signing {
  method: string;
  /** As sent. */
  path: string;
  /** As sent, without the question mark. */
  query: string;
  /** Signed headers in lower case; one character per byte. */
  headers: Readonly<Record<string, string>>;
  payloadHash: string;
  credentials: Credentials;
  time: Date;
  region: string;
}

/** A signature, and the state for signing chunks of the body. */
export interface Signature {
  signature: string;
  scope: string;
  timestamp: string;
  signedHeaders: string;
  key: Buffer;
}

/** SHA-256 of the empty string, in hexadecimal. */
export const EMPTY_SHA256 = sha256("");

/** SHA-256 in hexadecimal. */
export function sha256(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}

/** `YYYYMMDDTHHMMSSZ` */
export function toTimestamp(time: Date): string {
  return time.toISOString().replaceAll(/[-:]|\.\d+/g, "");
}

/** Percent-encodes everything except unreserved characters. */
export function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Signs a request. */
export function sign(signing: Signing): Signature {
  const names = Object.keys(signing.headers).sort();
  const signedHeaders = names.join(";");
  const canonical = [
    signing.method,
    decodeURIComponent(signing.path).split("/").map(encode).join("/"),
    canonicalizeQuery(signing.query),
    ...names.map((name) => `${name}:${signing.headers[name]!.trim().replaceAll(/ +/g, " ")}`),
    "",
    signedHeaders,
    signing.payloadHash,
  ].join("\n");
  const timestamp = toTimestamp(signing.time);
  const scope = `${timestamp.slice(0, 8)}/${signing.region}/s3/aws4_request`;
  const key = deriveKey(signing.credentials.secretKey, scope);
  const text = `AWS4-HMAC-SHA256\n${timestamp}\n${scope}\n${sha256(Buffer.from(canonical, "latin1"))}`;
  return { signature: hmac(key, text).toString("hex"), scope, timestamp, signedHeaders, key };
}

/** Formats the Authorization header of a signature. */
export function formatAuthorization(credentials: Credentials, signature: Signature): string {
  return (
    `AWS4-HMAC-SHA256 Credential=${credentials.accessKey}/${signature.scope}, ` +
    `SignedHeaders=${signature.signedHeaders}, Signature=${signature.signature}`
  );
}

/** Signs a chunk, continuing from the previous signature. */
export function signChunk(seed: Signature, before: string, data: Buffer): string {
  const text = `AWS4-HMAC-SHA256-PAYLOAD\n${seed.timestamp}\n${seed.scope}\n${before}\n${EMPTY_SHA256}\n${sha256(data)}`;
  return hmac(seed.key, text).toString("hex");
}

/**
 * Signs trailing headers, each `name:value
 * `.
 */
export function signTrailer(seed: Signature, before: string, trailer: string): string {
  const text = `AWS4-HMAC-SHA256-TRAILER\n${seed.timestamp}\n${seed.scope}\n${before}\n${sha256(trailer)}`;
  return hmac(seed.key, text).toString("hex");
}

/** Returns the form fields that sign its policy. */
export function signPolicy(
  policy: object | string,
  credentials: Credentials,
  time: Date,
  region: string,
): Record<string, string> {
  const timestamp = toTimestamp(time);
  const scope = `${timestamp.slice(0, 8)}/${region}/s3/aws4_request`;
  const text = typeof policy === "string" ? policy : JSON.stringify(policy);
  const encoded = Buffer.from(text).toString("base64");
  return {
    policy: encoded,
    "x-amz-algorithm": "AWS4-HMAC-SHA256",
    "x-amz-credential": `${credentials.accessKey}/${scope}`,
    "x-amz-date": timestamp,
    "x-amz-signature": hmac(deriveKey(credentials.secretKey, scope), encoded).toString("hex"),
  };
}

function deriveKey(secret: string, scope: string): Buffer {
  return scope.split("/").reduce<Buffer>(hmac, Buffer.from(`AWS4${secret}`));
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

function decodeAndEncode(text: string): string {
  return encode(decodeURIComponent(text));
}

function canonicalizeQuery(query: string): string {
  if (query === "") return "";
  const pairs = query.split("&").map((pair) => {
    const at = pair.indexOf("=");
    const [name, value] = at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)];
    return `${decodeAndEncode(name)}=${decodeAndEncode(value)}`;
  });
  // By name, then by value: `select=` comes before `select-type=2`.
  const toOrder = (pair: string): string => pair.replace("=", "\0");
  return pairs.sort((a, b) => (toOrder(a) < toOrder(b) ? -1 : 1)).join("&");
}
