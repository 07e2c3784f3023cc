// Resolves requested ranges against the size of the object.
import { StoreError } from "../model/store-error.ts";
import type { ByteRange, RangeRequest } from "../model/object.ts";

/** Both ends are included. Throws `InvalidRange` if the range is outside the object. */
export function resolveRange(range: RangeRequest, sizeBytes: number): ByteRange {
  const start = "suffix" in range ? Math.max(0, sizeBytes - range.suffix) : range.start;
  const end =
    "suffix" in range ? sizeBytes - 1 : Math.min(range.end ?? sizeBytes - 1, sizeBytes - 1);
  const isEmpty = start > end || ("suffix" in range && range.suffix === 0);
  if (isEmpty) {
    throw new StoreError("InvalidRange", "The requested range is not satisfiable", { sizeBytes });
  }
  return { start, end };
}
