// Rules for requests that a browser sends with the console's cookie: only the console's own page may send them.
import { PlatformError } from "@platform/kernel/errors";
import type { HeaderReader } from "@platform/kernel/http";
import { createConsoleError } from "../errors.ts";

const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD"]);
const BODY_TYPES: ReadonlySet<string> = new Set(["application/json", "application/octet-stream"]);

/** Origin of the page: fixed by configuration, or that of the Host header. */
export interface OriginRule {
  /** `https://console.example.com` */
  readonly origin: string | undefined;
  /** True if the listener uses TLS; scheme of the Host's origin. */
  readonly isTls: boolean;
}

/** True if a request changes nothing: not an upgrade, and a safe method. */
export function isRead(method: string, headers: HeaderReader): boolean {
  return SAFE_METHODS.has(method) && !headers.has("upgrade");
}

/**
 * Throws 403 unless the page itself sent the request. Writes and upgrades need the exact Origin; reads may lack it,
 * because browsers do not send it. Bodies must be JSON or bytes, which a form cannot send (415).
 */
export function checkPageRequest(method: string, headers: HeaderReader, rule: OriginRule): void {
  const origin = headers.get("origin");
  const site = headers.get("sec-fetch-site");
  const isReading = isRead(method, headers);
  const isForeignSite = site !== null && site !== "same-origin" && !(isReading && site === "none");
  const isForeignOrigin = origin === null ? !isReading : origin !== findOrigin(headers, rule);
  if (isForeignSite || isForeignOrigin) throw createConsoleError("foreign_origin");
  if (!isReading && hasBody(headers)) checkBodyType(headers);
}

/** The page's origin, as browsers write it. */
function findOrigin(headers: HeaderReader, { origin, isTls }: OriginRule): string {
  if (origin !== undefined) return origin;
  const host = headers.get("host") ?? "";
  const url = URL.parse(`${isTls ? "https" : "http"}://${host}`);
  // A Host with a user, a path or several values would be another origin than the one it shows.
  return url?.pathname === "/" && url.username === "" && !/[/@?#,\s]/.test(host) ? url.origin : "";
}

function hasBody(headers: HeaderReader): boolean {
  const length = headers.get("content-length");
  return headers.has("transfer-encoding") || (length !== null && length !== "0");
}

function checkBodyType(headers: HeaderReader): void {
  const type = (headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (BODY_TYPES.has(type)) return;
  throw new PlatformError(
    "unsupported_media_type",
    "The console sends application/json or application/octet-stream.",
  );
}
