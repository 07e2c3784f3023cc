// What a bucket's public-access block and ownership make of lists and policies.
import type { Bucket } from "../model/bucket.ts";
import type { ObjectOwnership, PublicAccessBlock } from "../model/bucket-settings.ts";

const OPEN: PublicAccessBlock = {
  blockPublicAcls: false,
  ignorePublicAcls: false,
  blockPublicPolicy: false,
  restrictPublicBuckets: false,
};

/** The block of a bucket. */
export function readPublicAccessBlock(bucket: Bucket): PublicAccessBlock {
  return bucket.settings.publicAccessBlock ?? OPEN;
}

/** The ownership of a bucket; `ObjectWriter` where nothing was put. */
export function readOwnership(bucket: Bucket): ObjectOwnership {
  return bucket.settings.ownership?.objectOwnership ?? "ObjectWriter";
}
