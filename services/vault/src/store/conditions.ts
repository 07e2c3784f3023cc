// Conditions of reads (RFC 9110 section 13.2.2).
import type { VersionRow } from "../index/records.ts";
import { StoreError } from "../model/store-error.ts";
import type { ContentHeaders, ReadConditions } from "../model/object.ts";

/**
 * Throws `PreconditionFailed`, or `NotModified` if the reader already has the current version. A copy never answers
 * `NotModified`: with `isCopy` every failing condition is `PreconditionFailed`. `headers` are those of the object.
 */
export function checkReadConditions(
  conditions: ReadConditions | undefined,
  row: Pick<VersionRow, "etag" | "modified" | "version">,
  isCopy: boolean,
  headers: ContentHeaders = {},
): void {
  if (conditions === undefined) return;
  const { ifMatch, ifNoneMatch, ifModifiedSinceMs, ifUnmodifiedSinceMs } = conditions;
  const modifiedMs = Math.floor(row.modified / 1000) * 1000;
  const details = { etag: row.etag, modifiedMs: row.modified, versionId: row.version };
  const fail = (condition: string) => {
    const message = "At least one of the pre-conditions you specified did not hold";
    return new StoreError("PreconditionFailed", message, { ...details, condition });
  };
  if (ifMatch !== undefined) {
    if (!matches(ifMatch, row.etag)) throw fail("If-Match");
  } else if (ifUnmodifiedSinceMs !== undefined && modifiedMs > ifUnmodifiedSinceMs) {
    throw fail("If-Unmodified-Since");
  }
  const notModified = (condition: string) => {
    if (isCopy) return fail(condition);
    const { cacheControl, expires } = headers;
    const freshness = {
      ...(cacheControl === undefined ? {} : { cacheControl }),
      ...(expires === undefined ? {} : { expires }),
    };
    return new StoreError("NotModified", "Not Modified", { ...details, freshness });
  };
  if (ifNoneMatch !== undefined) {
    if (matches(ifNoneMatch, row.etag)) throw notModified("If-None-Match");
  } else if (ifModifiedSinceMs !== undefined && modifiedMs <= ifModifiedSinceMs) {
    throw notModified("If-Modified-Since");
  }
}

function matches(etags: readonly string[], etag: string): boolean {
  return etags.some((wanted) => wanted === "*" || wanted === etag);
}
