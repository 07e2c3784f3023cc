// The services behind the front: their addresses, and the paths and headers that may pass.
import { PlatformError } from "@platform/kernel/errors";
import type { ServiceId } from "../contract.ts";

/** A service and its address. */
export interface Target {
  id: ServiceId;
  url: URL;
}

/** A request for a service. */
export interface TargetPath {
  target: Target;
  /** Path and query at the service. */
  path: string;
}

const PREFIX = /^\/svc\/([a-z]+)(\/.*)$/s;
const ALLOWED_PATHS = ["/api/", "/ws/"];
/** Routes of storage's administrators, which have no version. */
const STORAGE_PATHS = /^\/admin\/(?:encryption-keys|federation|remotes)(?:\/|$)/;
const REQUEST_HEADERS: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "cache-control",
  "content-length",
  "content-type",
  "idempotency-key",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "last-event-id",
  "prefer",
  "range",
  "traceparent",
  "tracestate",
]);
/** Metadata, versions and checksums of objects. */
const OBJECT_HEADER = /^x-amz-[a-z0-9-]+$/;
const RESPONSE_HEADERS: ReadonlySet<string> = new Set([
  "accept-ranges",
  "allow",
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-length",
  "content-range",
  "content-type",
  "etag",
  "last-modified",
  "ratelimit",
  "ratelimit-policy",
  "retry-after",
  "traceparent",
]);
/** Documents of the services' own; everything else may be what a user has stored. */
const DATA_TYPE =
  /^(?:application\/(?:[a-z.+-]+\+)?json|application\/x-ndjson|text\/event-stream)\s*(?:;|$)/i;
const USER_BYTES_POLICY = "sandbox; default-src 'none'; frame-ancestors 'none'";

/** Finds the service of `/svc/<id>/…`; undefined for other addresses. Throws 404 or 400 for those that never pass. */
export function findTarget(
  targets: ReadonlyMap<string, Target>,
  address: string,
): TargetPath | undefined {
  if (address !== "/svc" && !address.startsWith("/svc/")) return undefined;
  const found = PREFIX.exec(address);
  const target = found === null ? undefined : targets.get(found[1]!);
  if (found === null || target === undefined) {
    throw new PlatformError("not_found", "The console has no such service.");
  }
  const path = found[2]!;
  checkPath(path, target.id);
  return { target, path };
}

// Services normalise paths themselves, each in its way: what could leave the prefix in any of them is refused.
function checkPath(path: string, id: ServiceId): void {
  const plain = path.split("?", 1)[0]!;
  const segments = plain.split("/").map(decodeSegment);
  const hasDots = segments.some(
    (segment) => segment === undefined || /^\.{1,2}(?:;.*)?$/.test(segment),
  );
  if (hasDots || /[\\\p{Cc}#]/u.test(plain) || !/^[\x21-\x7e]*$/.test(path)) {
    throw new PlatformError("bad_request", "The path is not in its normal form.");
  }
  if (ALLOWED_PATHS.some((prefix) => plain.startsWith(prefix))) return;
  if (id === "vault" && STORAGE_PATHS.test(plain)) return;
  throw new PlatformError("not_found", "The console forwards only the API of a service.");
}

// `%2e%2e`, `%252e`: decoded once, as services do; `%5c` and control characters are refused.
function decodeSegment(segment: string): string | undefined {
  if (/%(?:5c|0[0-9a-f]|1[0-9a-f]|7f)/i.test(segment)) return undefined;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** The request headers that pass; never cookies, credentials, addresses or the page's origin. */
export function pickRequestHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (REQUEST_HEADERS.has(name) && typeof value === "string") picked[name] = value;
  }
  return picked;
}

// Without any `allow-…`. A second directive of that name has no effect, and a comma begins another policy.
function isSandboxed(policy: string): boolean {
  const directives = policy.split(";").map((one) => one.trim().toLowerCase());
  return directives.find((one) => /^sandbox\b/.test(one)) === "sandbox";
}

/**
 * The response headers that pass. Bytes of users cannot act in the console's origin: they are sandboxed and
 * downloaded, unless the service has sandboxed them itself to be shown in a frame.
 */
export function pickResponseHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const passes = RESPONSE_HEADERS.has(name) || OBJECT_HEADER.test(name);
    if (passes && typeof value === "string") picked[name] = value;
  }
  const policy = headers["content-security-policy"];
  const isFramed = typeof policy === "string" && isSandboxed(policy);
  picked["content-security-policy"] = isFramed ? policy : USER_BYTES_POLICY;
  if (!isFramed) {
    picked["x-frame-options"] = "DENY";
    const type = picked["content-type"] ?? "";
    const disposition = picked["content-disposition"] ?? "";
    if (!DATA_TYPE.test(type) && !/^attachment\s*(?:;|$)/i.test(disposition)) {
      picked["content-disposition"] = "attachment";
    }
  }
  picked["x-content-type-options"] = "nosniff";
  picked["referrer-policy"] = "no-referrer";
  picked["cross-origin-resource-policy"] = "same-origin";
  picked["cache-control"] ??= "no-store";
  return picked;
}
