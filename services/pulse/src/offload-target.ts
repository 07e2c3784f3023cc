// The object store of a broker: its address and credentials, from the configuration or the API.
import { checkEndpoint, type S3Credentials } from "@platform/s3";

/** An object store. `token` is a secret. */
export interface OffloadTarget {
  endpoint: string;
  bucket: string;
  region: string;
  /** Empty, or ending in `/`. */
  prefix: string;
  token: string;
}

/** True for an `http://` or `https://` URL without path, query and credentials. */
export function isEndpoint(text: string): boolean {
  const url = URL.parse(text);
  if (url === null) return false;
  try {
    checkEndpoint(url);
    return true;
  } catch {
    return false;
  }
}

/** True for the name of a bucket, as S3 allows it. */
export function isBucket(text: string): boolean {
  return /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(text);
}

/** True for an empty prefix, or one of plain names that ends in `/`. */
export function isPrefix(text: string): boolean {
  return text === "" || (/^[A-Za-z0-9!_.*'()/-]{1,256}$/.test(text) && text.endsWith("/"));
}

/** True for the name of a region. */
export function isRegion(text: string): boolean {
  return /^[A-Za-z0-9-]{1,64}$/.test(text);
}

/** Splits `ACCESS_KEY:SECRET_KEY[:SESSION_TOKEN]` at the first two colons; undefined if it is not one. */
export function parseToken(token: string): S3Credentials | undefined {
  // Header values cannot contain other characters.
  if (!/^[\x21-\x7e]{3,8192}$/.test(token)) return undefined;
  const first = token.indexOf(":");
  const second = token.indexOf(":", first + 1);
  const accessKey = token.slice(0, Math.max(0, first));
  const secretKey = second < 0 ? token.slice(first + 1) : token.slice(first + 1, second);
  const sessionToken = second < 0 ? undefined : token.slice(second + 1);
  if (first < 0 || accessKey === "" || secretKey === "" || sessionToken === "") return undefined;
  return { accessKey, secretKey, sessionToken };
}

/** True if both are the same place: the same objects under the same names. */
export function isSamePlace(one: OffloadTarget, other: OffloadTarget): boolean {
  return (
    new URL(one.endpoint).origin === new URL(other.endpoint).origin &&
    one.bucket === other.bucket &&
    one.prefix === other.prefix
  );
}
