// The settings of a bucket, one type for each.
import type { Acl } from "./acl.ts";
import type { NotificationRule } from "./event.ts";
import type { GeoPlacement } from "./geo.ts";
import type { LifecycleConfiguration } from "./lifecycle.ts";
import type { ObjectLockConfiguration } from "./lock.ts";
import type { ReplicationSettings } from "./replication.ts";
import type { TriggerSettings } from "./trigger.ts";
import type { BucketQuota } from "./usage.ts";
import type { VectorIndex } from "./vector.ts";

/**
 * The settings by kind. Callers validate them. The store acts on `lifecycle`, `notification`, `objectLock`, `quota`,
 * `triggers`, `coldTier`, `geoPlacement`, `replication` and `vectorIndex` itself and only keeps the others. As JSON each is at most 1 MiB.
 */
export interface BucketSettings {
  lifecycle: LifecycleConfiguration;
  notification: { rules: readonly NotificationRule[] };
  objectLock: ObjectLockConfiguration;
  quota: BucketQuota;
  /** The JSON document as it was put. */
  policy: object;
  cors: { rules: readonly CorsRule[] };
  website: WebsiteConfiguration;
  encryption: BucketEncryption;
  publicAccessBlock: PublicAccessBlock;
  ownership: { objectOwnership: ObjectOwnership };
  tagging: Readonly<Record<string, string>>;
  acl: Acl;
  accelerate: { status: "Suspended" };
  logging: BucketLogging;
  triggers: TriggerSettings;
  vectorIndex: VectorIndex;
  coldTier: ColdTier;
  geoPlacement: GeoPlacement;
  replication: ReplicationSettings;
  /** Requests that are counted on their own. */
  metrics: { configurations: readonly MetricsFilter[] };
}

/** A configuration of request metrics: requests for objects that meet all criteria; without any, all of the bucket. */
export interface MetricsFilter {
  readonly id: string;
  readonly prefix?: string;
  readonly tags?: Readonly<Record<string, string>>;
}

/** The class `COLD` of a bucket: where its objects are moved, and when. */
export interface ColdTier {
  /** Age at which live objects are moved; 0 is at once. Without it, only lifecycle rules move them. */
  readonly days?: number;
  readonly prefix: string;
  readonly remote: string;
  /** The bucket there. */
  readonly bucket: string;
  /** Smaller objects stay, in bytes. */
  readonly minimum_size: number;
}

/** The kinds of settings. */
export type BucketSettingKind = keyof BucketSettings;

/** The place of the access logs of a bucket. */
export interface BucketLogging {
  readonly targetBucket: string;
  readonly targetPrefix: string;
  /** The time in the keys of logs below `account/region/bucket/`; absent: keys are the prefix and the time. */
  readonly partitionedBy?: "EventTime" | "DeliveryTime";
}

/** A CORS rule. */
export interface CorsRule {
  readonly id: string;
  /** At most one `*` in each. */
  readonly origins: readonly string[];
  readonly methods: readonly string[];
  /** Case-insensitive; at most one `*` in each. */
  readonly headers: readonly string[];
  readonly exposed: readonly string[];
  readonly maxAgeSeconds: number | null;
}

/** The target of a redirect; missing parts are those of the request. */
export interface WebsiteRedirect {
  readonly host?: string;
  readonly protocol?: string;
  readonly status?: number;
  readonly prefixWith?: string;
  readonly keyWith?: string;
}

/** The static website of a bucket. */
export interface WebsiteConfiguration {
  readonly indexSuffix?: string;
  readonly errorKey?: string;
  readonly redirectAll?: { readonly host: string; readonly protocol?: string };
  readonly rules: readonly {
    readonly prefix?: string;
    readonly errorStatus?: number;
    readonly redirect: WebsiteRedirect;
  }[];
}

/** Default encryption. Buckets of older versions may lack `bucketKeyEnabled`. */
export interface BucketEncryption {
  algorithm: "AES256" | "aws:kms";
  /** With `aws:kms`, as it was put: id, alias or ARN. Default: the alias `aws/s3`. */
  keyId?: string;
  bucketKeyEnabled?: boolean;
}

/** The four switches of a public access block. */
export interface PublicAccessBlock {
  readonly blockPublicAcls: boolean;
  readonly ignorePublicAcls: boolean;
  readonly blockPublicPolicy: boolean;
  readonly restrictPublicBuckets: boolean;
}

/** The ownership of new objects. `BucketOwnerEnforced` disables ACLs. */
export type ObjectOwnership = "BucketOwnerEnforced" | "BucketOwnerPreferred" | "ObjectWriter";
