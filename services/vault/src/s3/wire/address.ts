// The bucket, the key and the query of a request.
import { decodeUri, parseQuery, type QueryPair } from "./uri.ts";

/** The kind of resource that a request addresses. */
export type Level = "service" | "bucket" | "object";

/** Query parameters by name. If a name repeats, its first value counts. */
export class RequestQuery {
  readonly pairs: readonly QueryPair[];
  readonly #byName = new Map<string, string>();

  constructor(pairs: readonly QueryPair[]) {
    this.pairs = pairs;
    for (const [name, value] of pairs) if (!this.#byName.has(name)) this.#byName.set(name, value);
  }

  get(name: string): string | undefined {
    return this.#byName.get(name);
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }
}

/** The resource that a request addresses. */
export interface Address {
  level: Level;
  bucket: string;
  key: string;
}

/** Parses a raw query. */
export function readQuery(raw: string): RequestQuery {
  return new RequestQuery(parseQuery(raw));
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
