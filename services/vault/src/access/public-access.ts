// What a bucket's public-access block and ownership make of lists and policies.
import type { Bucket } from "../model/bucket.ts";

/** The four switches; all off where nothing was put. */
export interface PublicAccessBlock {
  readonly blockPublicAcls: boolean;
  readonly ignorePublicAcls: boolean;
  readonly blockPublicPolicy: boolean;
  readonly restrictPublicBuckets: boolean;
}

/** Who owns what is put into a bucket; ACLs do not count with `BucketOwnerEnforced`. */
export type ObjectOwnership = "BucketOwnerEnforced" | "BucketOwnerPreferred" | "ObjectWriter";

const OPEN: PublicAccessBlock = {
  blockPublicAcls: false,
  ignorePublicAcls: false,
  blockPublicPolicy: false,
  restrictPublicBuckets: false,
};

/** The block of a bucket. */
export function readPublicAccessBlock(bucket: Bucket): PublicAccessBlock {
  return (bucket.settings.publicAccessBlock as PublicAccessBlock | undefined) ?? OPEN;
}

/** The ownership of a bucket; `ObjectWriter` where nothing was put. */
export function readOwnership(bucket: Bucket): ObjectOwnership {
  const kept = bucket.settings.ownership as { objectOwnership: ObjectOwnership } | undefined;
  return kept?.objectOwnership ?? "ObjectWriter";
}
