// Resolves requested ranges against the size of the object.
import { StoreError } from "../model/store-error.ts";
import type { ByteRange, RangeRequest } from "../model/object.ts";

/**
 * Both ends are included. Undefined for the last bytes of an empty object, which S3 answers with the whole; any other range
 * outside the object throws `InvalidRange`.
 */
export function resolveRange(range: RangeRequest, sizeBytes: number): ByteRange | undefined {
  if (sizeBytes === 0 && "suffix" in range && range.suffix > 0) return undefined;
  const start = "suffix" in range ? Math.max(0, sizeBytes - range.suffix) : range.start;
  const end =
    "suffix" in range ? sizeBytes - 1 : Math.min(range.end ?? sizeBytes - 1, sizeBytes - 1);
  const isEmpty = start > end || ("suffix" in range && range.suffix === 0);
  if (isEmpty) {
    throw new StoreError("InvalidRange", "The requested range is not satisfiable", { sizeBytes });
  }
  return { start, end };
}
