// Ranges as asked for, resolved against what there is.
import { StoreError } from "../model/store-error.ts";
import type { ByteRange, RangeRequest } from "../model/object.ts";

/** Both ends included; throws `InvalidRange` where nothing of it exists. */
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
