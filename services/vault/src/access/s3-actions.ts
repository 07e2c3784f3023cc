// All actions of S3, implemented here or not ("Actions, resources, and condition keys for Amazon S3"), some of this store, and
// those on keys that policies for encrypted objects name.

/** Actions on objects, by their names without `s3:` in lower case. */
const ON_OBJECTS = `
  AbortMultipartUpload BypassGovernanceRetention DeleteObject DeleteObjectTagging DeleteObjectVersion
  DeleteObjectVersionTagging GetObject GetObjectAcl GetObjectAttributes GetObjectLegalHold GetObjectRetention
  GetObjectTagging GetObjectTorrent GetObjectVersion GetObjectVersionAcl GetObjectVersionAttributes
  GetObjectVersionForReplication GetObjectVersionTagging GetObjectVersionTorrent InitiateReplication
  ListMultipartUploadParts ObjectOwnerOverrideToBucketOwner PutObject PutObjectAcl PutObjectLegalHold
  PutObjectRetention PutObjectTagging PutObjectVersionAcl PutObjectVersionTagging ReplicateDelete ReplicateObject
  ReplicateTags RestoreObject UpdateObjectEncryption
`;

/** Actions on buckets. */
const ON_BUCKETS = `
  CreateBucket CreateBucketMetadataTableConfiguration DeleteBucket DeleteBucketMetadataTableConfiguration
  DeleteBucketOwnershipControls DeleteBucketPolicy DeleteBucketWebsite GetAccelerateConfiguration
  GetAnalyticsConfiguration GetBucketAbac GetBucketAcl GetBucketCORS GetBucketLocation GetBucketLogging
  GetBucketMetadataTableConfiguration GetBucketNotification GetBucketObjectLockConfiguration
  GetBucketOwnershipControls GetBucketPolicy GetBucketPolicyStatus GetBucketPublicAccessBlock
  GetBucketRequestPayment GetBucketTagging GetBucketVersioning GetBucketWebsite GetEncryptionConfiguration
  GetIntelligentTieringConfiguration GetInventoryConfiguration GetLifecycleConfiguration GetMetricsConfiguration
  GetReplicationConfiguration ListBucket ListBucketMultipartUploads ListBucketVersions ListTagsForResource
  PutAccelerateConfiguration PutAnalyticsConfiguration PutBucketAbac PutBucketAcl PutBucketCORS PutBucketLogging
  PutBucketNotification PutBucketObjectLockConfiguration PutBucketOwnershipControls PutBucketPolicy
  PutBucketPublicAccessBlock PutBucketRequestPayment PutBucketTagging PutBucketVersioning PutBucketWebsite
  PutEncryptionConfiguration PutIntelligentTieringConfiguration PutInventoryConfiguration
  PutLifecycleConfiguration PutMetricsConfiguration PutReplicationConfiguration TagResource UntagResource
`;

/** Actions on buckets that S3 does not have. */
const OWN_ON_BUCKETS =
  "GetBucketGeoPlacement GetBucketTriggers GetBucketVectorIndex PutBucketGeoPlacement PutBucketTriggers PutBucketVectorIndex QueryBucketMetadata";

/** As those, on objects. */
const OWN_ON_OBJECTS = "InvokeModule";

/** Actions on the account and on other resources, which bucket policies cannot contain. */
const ON_ACCOUNT = `
  AssociateAccessGrantsIdentityCenter CreateAccessGrant CreateAccessGrantsInstance CreateAccessGrantsLocation
  CreateAccessPoint CreateAccessPointForObjectLambda CreateJob CreateMultiRegionAccessPoint CreateStorageLensGroup
  DeleteAccessGrant DeleteAccessGrantsInstance DeleteAccessGrantsInstanceResourcePolicy DeleteAccessGrantsLocation
  DeleteAccessPoint DeleteAccessPointForObjectLambda DeleteAccessPointPolicy DeleteAccessPointPolicyForObjectLambda
  DeleteJobTagging DeleteMultiRegionAccessPoint DeleteStorageLensConfiguration DeleteStorageLensConfigurationTagging
  DeleteStorageLensGroup DescribeJob DescribeMultiRegionAccessPointOperation DissociateAccessGrantsIdentityCenter
  GetAccessGrant GetAccessGrantsInstance GetAccessGrantsInstanceForPrefix GetAccessGrantsInstanceResourcePolicy
  GetAccessGrantsLocation GetAccessPoint GetAccessPointConfigurationForObjectLambda GetAccessPointForObjectLambda
  GetAccessPointPolicy GetAccessPointPolicyForObjectLambda GetAccessPointPolicyStatus
  GetAccessPointPolicyStatusForObjectLambda GetAccountPublicAccessBlock GetDataAccess GetJobTagging
  GetMultiRegionAccessPoint GetMultiRegionAccessPointPolicy GetMultiRegionAccessPointPolicyStatus
  GetMultiRegionAccessPointRoutes GetStorageLensConfiguration GetStorageLensConfigurationTagging
  GetStorageLensDashboard GetStorageLensGroup ListAccessGrants ListAccessGrantsInstances ListAccessGrantsLocations
  ListAccessPoints ListAccessPointsForObjectLambda ListAllMyBuckets ListCallerAccessGrants ListJobs
  ListMultiRegionAccessPoints ListStorageLensConfigurations ListStorageLensGroups
  PutAccessGrantsInstanceResourcePolicy PutAccessPointConfigurationForObjectLambda PutAccessPointPolicy
  PutAccessPointPolicyForObjectLambda PutAccessPointPublicAccessBlock PutAccountPublicAccessBlock PutJobTagging
  PutMultiRegionAccessPointPolicy PutStorageLensConfiguration PutStorageLensConfigurationTagging
  SubmitMultiRegionAccessPointRoutes UpdateAccessGrantsLocation UpdateJobPriority UpdateJobStatus
  UpdateStorageLensGroup
`;

/** Actions on named keys. Requests for objects need `Decrypt` and `GenerateDataKey`; nothing needs the others. */
const ON_KEYS = "Decrypt DescribeKey Encrypt GenerateDataKey ReEncryptFrom ReEncryptTo";

/** The kind of resource that an action applies to. */
export type ActionLevel = "account" | "bucket" | "object" | "key";

/** Every action, as `s3:getobject` and `kms:decrypt`, with its level. */
export const S3_ACTIONS: ReadonlyMap<string, ActionLevel> = new Map([
  ...readNames(ON_OBJECTS, "object"),
  ...readNames(ON_BUCKETS, "bucket"),
  ...readNames(OWN_ON_BUCKETS, "bucket"),
  ...readNames(OWN_ON_OBJECTS, "object"),
  ...readNames(ON_ACCOUNT, "account"),
  ...readNames(ON_KEYS, "key", "kms"),
]);

function readNames(text: string, level: ActionLevel, service = "s3"): [string, ActionLevel][] {
  return text
    .trim()
    .split(/\s+/)
    .map((name) => [`${service}:${name.toLowerCase()}`, level]);
}
