// Entity tags and conditional requests. RFC 9110 sections 8.8.3 and 13.1
import { createHash } from "node:crypto";
import { matchesTag } from "../content/index.ts";
import { PlatformError } from "../errors/index.ts";
import type { HeaderReader } from "./route.ts";

/** Creates a strong tag of the content, including quotes. */
export function createEtag(content: string | Uint8Array): string {
  return `"${createHash("sha256").update(content).digest("base64url").slice(0, 22)}"`;
}

/**
 * Throws `precondition_failed` if the request has an If-Match header that `current` does not match (undefined: the
 * resource does not exist). `part`: tag of the part that is changed, which is accepted as well.
 */
export function requireIfMatch(
  headers: HeaderReader,
  current: string | undefined,
  part?: string,
): void {
  const header = headers.get("if-match");
  if (header === null) return;
  if ([current, part].some((tag) => tag !== undefined && matchesTag(header, tag, "strong"))) return;
  throw new PlatformError("precondition_failed", "The resource has changed; read it again.", {
    headers: current === undefined ? {} : { ETag: current },
  });
}

/**
 * Throws `precondition_failed` unless If-Match and If-None-Match allow to change what has the tag `current` (undefined:
 * it does not exist). RFC 9110 section 13.2.2
 */
export function requirePreconditions(headers: HeaderReader, current: string | undefined): void {
  requireIfMatch(headers, current);
  const header = headers.get("if-none-match");
  if (header === null || current === undefined || !matchesTag(header, current, "weak")) return;
  throw new PlatformError("precondition_failed", "The resource exists; read it first.", {
    headers: { ETag: current },
  });
}

/** True if If-None-Match contains `current`: GET and HEAD then return 304. */
export function isNotModified(headers: Headers, current: string): boolean {
  const header = headers.get("if-none-match");
  return header !== null && matchesTag(header, current, "weak");
}
