// The bucket and the key of a request.
import { decodeUri } from "./uri.ts";

/** The kind of resource that a request addresses. */
export type Level = "service" | "bucket" | "object";

/** The resource that a request addresses. */
export interface Address {
  level: Level;
  bucket: string;
  key: string;
}

/**
 * Reads the bucket and key of a request: from the Host if it is a name below `domain`, else from the path. Throws InvalidURI.
 */
export function readAddress(rawPath: string, host: string, domain: string | undefined): Address {
  const hosted = readHostedBucket(host, domain);
  if (hosted !== undefined) {
    const key = decodeUri(rawPath.slice(1));
    return { level: key === "" ? "bucket" : "object", bucket: hosted, key };
  }
  if (rawPath === "/" || rawPath === "") return { level: "service", bucket: "", key: "" };
  const slash = rawPath.indexOf("/", 1);
  const bucket = decodeUri(slash < 0 ? rawPath.slice(1) : rawPath.slice(1, slash));
  const key = slash < 0 ? "" : decodeUri(rawPath.slice(slash + 1));
  return { level: key === "" ? "bucket" : "object", bucket, key };
}

/** The bucket that a Host names below `domain`; undefined if it is another Host. */
export function readHostedBucket(host: string, domain: string | undefined): string | undefined {
  if (domain === undefined) return undefined;
  const name = host.replace(/:\d+$/, "").toLowerCase();
  return name.endsWith(`.${domain}`) ? name.slice(0, -domain.length - 1) : undefined;
}
