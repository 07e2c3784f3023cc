// The public access block and the ownership of a bucket, with their defaults.
import type { Bucket } from "../model/bucket.ts";
import type { ObjectOwnership, PublicAccessBlock } from "../model/bucket-settings.ts";

const OPEN: PublicAccessBlock = {
  blockPublicAcls: false,
  ignorePublicAcls: false,
  blockPublicPolicy: false,
  restrictPublicBuckets: false,
};

/** The public access block of a bucket. */
export function readPublicAccessBlock(bucket: Bucket): PublicAccessBlock {
  return bucket.settings.publicAccessBlock ?? OPEN;
}

/** The ownership of a bucket; `ObjectWriter` by default. */
export function readOwnership(bucket: Bucket): ObjectOwnership {
  return bucket.settings.ownership?.objectOwnership ?? "ObjectWriter";
}
