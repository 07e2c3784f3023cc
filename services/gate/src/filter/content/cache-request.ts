// Properties of a request that decide how the cache may answer it.
import { Known, Method } from "@platform/http1";
import { type Directives, parseDirectives } from "../../cache/cache-control.ts";
import type { GateExchange } from "../../exchange/exchange.ts";

/** Of a request without Cache-Control. */
export const NO_DIRECTIVES = parseDirectives(undefined);
const PRAGMA_NO_CACHE = parseDirectives("no-cache");

/** Cache-Control of a request; of HTTP/1.0 also `Pragma: no-cache`. */
export function readDirectives({ head }: GateExchange): Directives {
  const { fields } = head;
  if (fields.has(Known.CacheControl)) return parseDirectives(fields.get(Known.CacheControl));
  const isOld =
    fields.has(Known.Pragma) &&
    /(?:^|,)\s*no-cache\s*(?:,|$)/i.test(fields.get(Known.Pragma) ?? "");
  return isOld ? PRAGMA_NO_CACHE : NO_DIRECTIVES;
}

/** The identity that the upstream receives: responses to one are not used for another. */
export function readScope({ userData }: GateExchange): string {
  const { caller, identityLines, authLines, apiKey } = userData;
  if (caller.kind !== "user" && identityLines === null && authLines === null && apiKey === null)
    return "";
  const user =
    caller.kind === "user" ? `${caller.claims.iss ?? ""} ${caller.claims.sub ?? ""}` : "";
  const lines = `${identityLines?.toString("latin1") ?? ""}${authLines?.toString("latin1") ?? ""}`;
  return lines === "" && user === "" ? "" : `${user}\n${lines}`;
}

/** True if the request has content: an upstream may read it, but no key contains it. */
export function hasBody({ head }: GateExchange): boolean {
  return head.contentLength > 0 || head.fields.has(Known.TransferEncoding);
}

/** True if the response may be a part, or none if the client has it. */
export function isConditional({ head }: GateExchange): boolean {
  const { fields } = head;
  return (
    fields.has(Known.Range) || fields.has(Known.IfNoneMatch) || fields.has(Known.IfModifiedSince)
  );
}

/** Methods that change nothing (RFC 9110 section 9.2.1). */
export const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** True if the method of the request is one of {@link SAFE_METHODS}. */
export function isSafe({ head }: GateExchange): boolean {
  const { methodId } = head;
  return (
    methodId === Method.GET ||
    methodId === Method.HEAD ||
    methodId === Method.OPTIONS ||
    methodId === Method.TRACE
  );
}
