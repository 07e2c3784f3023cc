// Enforces quotas: refuses writes that add to a full bucket. Writes that add nothing always pass.
import type { Bucket } from "./bucket.ts";
import { StoreError } from "./store-error.ts";
import type { BucketUsage } from "./usage.ts";

/** Throws `QuotaExceeded` if the bucket has a quota that `bytes` or `versions` more would exceed. */
export function requireQuota(
  { name, settings: { quota } }: Bucket,
  usage: Readonly<BucketUsage>,
  bytes: number,
  versions: number,
): void {
  if (quota === undefined) return;
  const { bytesMax = Infinity, objectsMax = Infinity } = quota;
  if (bytes > 0 && usage.bytes + usage.uploadBytes + bytes > bytesMax) {
    throw exceeded(name, `${bytesMax} bytes`);
  }
  if (versions > 0 && usage.versions + versions > objectsMax) {
    throw exceeded(name, `${objectsMax} objects`);
  }
}

function exceeded(bucket: string, limit: string): StoreError {
  return new StoreError("QuotaExceeded", `The bucket's quota of ${limit} would be exceeded`, {
    bucket,
  });
}
