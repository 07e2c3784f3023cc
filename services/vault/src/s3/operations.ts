// The table of operations of the object API: one row each, with its request, its permission and its handler.
import { STORAGE_SCOPES } from "../access/authorizer.ts";
import type { Operation, OperationHandler } from "./context.ts";
import {
  deleteBucketColdTier,
  getBucketColdTier,
  putBucketColdTier,
  sweepBucketColdTier,
} from "./bucket/cold-tier.ts";
import { deleteGeoPlacement, getGeoPlacement, putGeoPlacement } from "./bucket/geo-placement.ts";
import { restoreObject } from "./object/restore-object.ts";
import { getBucketAcl, putBucketAcl } from "./bucket/acl.ts";
import { askBucket } from "./bucket/ask.ts";
import {
  createBucket,
  deleteBucket,
  getBucketLocation,
  headBucket,
  listBuckets,
} from "./bucket/bucket.ts";
import { getBucketLogging, putBucketLogging } from "./bucket/logging.ts";
import { corsSetting } from "./bucket/cors.ts";
import { metrics } from "./bucket/metrics.ts";
import { encryptionSetting } from "./bucket/encryption.ts";
import { lifecycleSetting } from "./bucket/lifecycle.ts";
import { listObjectVersions, listObjects, listObjectsV2 } from "./bucket/list-objects.ts";
import { getBucketNotification, putBucketNotification } from "./bucket/notification.ts";
import { getObjectLockConfiguration, putObjectLockConfiguration } from "./bucket/object-lock.ts";
import { ownershipSetting } from "./bucket/ownership.ts";
import { getBucketPolicyStatus, policySetting } from "./bucket/policy.ts";
import { publicAccessBlockSetting } from "./bucket/public-access-block.ts";
import {
  deleteBucketReplication,
  getBucketReplication,
  initiateReplication,
  putBucketReplication,
} from "./bucket/replication.ts";
import { queryBucketMetadata } from "./bucket/sql.ts";
import { taggingSetting } from "./bucket/tagging.ts";
import {
  analytics,
  getBucketAccelerateConfiguration,
  getBucketRequestPayment,
  intelligentTiering,
  inventory,
  putBucketAccelerateConfiguration,
  putBucketRequestPayment,
} from "./bucket/unset.ts";
import {
  deleteBucketVectorIndex,
  getBucketVectorIndex,
  putBucketVectorIndex,
} from "./bucket/vector-index.ts";
import { findSimilarObjects, searchBucketVectors } from "./bucket/vector-search.ts";
import { getBucketVersioning, putBucketVersioning } from "./bucket/versioning.ts";
import { websiteSetting } from "./bucket/website.ts";
import { listMultipartUploads, listParts } from "./multipart/list.ts";
import { uploadPart, uploadPartCopy } from "./multipart/part.ts";
import {
  abortMultipartUpload,
  completeMultipartUpload,
  createMultipartUpload,
} from "./multipart/upload.ts";
import { getObjectAcl, putObjectAcl } from "./object/acl.ts";
import { copyObject } from "./object/copy-object.ts";
import { deleteObject, deleteObjects } from "./object/delete-object.ts";
import { getObject, headObject } from "./object/get-object.ts";
import {
  getObjectLegalHold,
  getObjectRetention,
  putObjectLegalHold,
  putObjectRetention,
} from "./object/lock.ts";
import { getObjectAttributes } from "./object/object-attributes.ts";
import { postObject } from "./object/post-object.ts";
import { putObject } from "./object/put-object.ts";
import { selectObjectContent, selectRecords } from "./object/select-object.ts";
import { deleteObjectTagging, getObjectTagging, putObjectTagging } from "./object/tagging.ts";
import { deleteObjectVector, getObjectVector, putObjectVector } from "./object/vector.ts";
import { deleteBucketTriggers, getBucketTriggers, putBucketTriggers } from "./bucket/triggers.ts";
import { startPipeline } from "./bucket/pipeline.ts";
import { transformObject } from "./object/transform-object.ts";
import { assumeRoleWithWebIdentity } from "./sts/assume-role.ts";

const { read: READ, write: WRITE } = STORAGE_SCOPES;
/** The token in the request decides. */
const TOKEN = "token";
const BUCKET_READ = ["bucket", "READ"] as const;
const BUCKET_WRITE = ["bucket", "WRITE"] as const;
const BUCKET_LISTING = { action: "s3:ListBucket", acl: BUCKET_READ, answersRegion: true };
const NEW_VERSION = { action: "s3:PutObject", acl: BUCKET_WRITE, createsVersion: true };
const LOCK_IN_BODY = { values: ["s3:object-lock-"] };
const OBJECT_READING = {
  action: "s3:GetObject",
  versionAction: "s3:GetObjectVersion",
  acl: ["object", "READ"] as const,
  revealsMissing: true,
};

const JSON_SETTING = { refusesAnonymous: true, errorForm: "json" as const };
const METADATA_QUESTION = {
  action: "s3:QueryBucketMetadata",
  refusesAnonymous: true,
  errorForm: "json" as const,
};

/**
 * All operations: scope, name, request, handler, and the fields that differ from the defaults. A request is a method, a level and
 * query parameters that must all be present; `copy` stands for a header `x-amz-copy-source`, `form` for the content type of
 * forms. The row with the most parameters wins, so the order of rows does not matter. The action is the name of the operation
 * by default. Names follow "Actions, resources, and condition keys for Amazon S3".
 */
export const OPERATIONS: readonly Operation[] = [
  row(TOKEN, "AssumeRoleWithWebIdentity", "POST service?form", assumeRoleWithWebIdentity, {
    action: "sts:AssumeRoleWithWebIdentity",
    authorizesItself: true,
    isBucketOptional: true,
    errorForm: "sts",
  }),
  row(READ, "ListBuckets", "GET service", listBuckets, {
    action: "s3:ListAllMyBuckets",
    isBucketOptional: true,
  }),
  row(WRITE, "CreateBucket", "PUT bucket", createBucket, {
    authorizesItself: true,
    decidedByBody: { values: ["s3:locationconstraint"] },
    isBucketOptional: true,
  }),
  row(WRITE, "DeleteBucket", "DELETE bucket", deleteBucket),
  row(READ, "HeadBucket", "HEAD bucket", headBucket, BUCKET_LISTING),
  row(READ, "ListObjects", "GET bucket", listObjects, BUCKET_LISTING),
  row(READ, "ListObjectsV2", "GET bucket?list-type", listObjectsV2, BUCKET_LISTING),
  row(READ, "ListObjectVersions", "GET bucket?versions", listObjectVersions, {
    action: "s3:ListBucketVersions",
    acl: BUCKET_READ,
  }),
  row(READ, "ListMultipartUploads", "GET bucket?uploads", listMultipartUploads, {
    action: "s3:ListBucketMultipartUploads",
    acl: BUCKET_READ,
  }),
  row(WRITE, "DeleteObjects", "POST bucket?delete", deleteObjects, {
    action: "s3:DeleteObject",
    versionAction: "s3:DeleteObjectVersion",
    acl: BUCKET_WRITE,
    authorizesItself: true,
  }),
  row(WRITE, "PostObject", "POST bucket", postObject, {
    action: "s3:PutObject",
    acl: BUCKET_WRITE,
    authorizesItself: true,
  }),
  row(READ, "GetBucketLocation", "GET bucket?location", getBucketLocation),
  row(READ, "GetBucketVersioning", "GET bucket?versioning", getBucketVersioning),
  row(WRITE, "PutBucketVersioning", "PUT bucket?versioning", putBucketVersioning),
  row(READ, "GetBucketTagging", "GET bucket?tagging", taggingSetting.get),
  row(WRITE, "PutBucketTagging", "PUT bucket?tagging", taggingSetting.put),
  row(WRITE, "DeleteBucketTagging", "DELETE bucket?tagging", taggingSetting.delete, {
    action: "s3:PutBucketTagging",
  }),
  row(READ, "GetBucketAcl", "GET bucket?acl", getBucketAcl, { acl: ["bucket", "READ_ACP"] }),
  row(WRITE, "PutBucketAcl", "PUT bucket?acl", putBucketAcl, { acl: ["bucket", "WRITE_ACP"] }),
  row(READ, "GetBucketPolicy", "GET bucket?policy", policySetting.get),
  row(WRITE, "PutBucketPolicy", "PUT bucket?policy", policySetting.put),
  row(WRITE, "DeleteBucketPolicy", "DELETE bucket?policy", policySetting.delete),
  row(READ, "GetBucketPolicyStatus", "GET bucket?policyStatus", getBucketPolicyStatus),
  row(READ, "GetBucketCors", "GET bucket?cors", corsSetting.get, { action: "s3:GetBucketCORS" }),
  row(WRITE, "PutBucketCors", "PUT bucket?cors", corsSetting.put, { action: "s3:PutBucketCORS" }),
  row(WRITE, "DeleteBucketCors", "DELETE bucket?cors", corsSetting.delete, {
    action: "s3:PutBucketCORS",
  }),
  row(READ, "GetBucketLifecycle", "GET bucket?lifecycle", lifecycleSetting.get, {
    action: "s3:GetLifecycleConfiguration",
  }),
  row(WRITE, "PutBucketLifecycle", "PUT bucket?lifecycle", lifecycleSetting.put, {
    action: "s3:PutLifecycleConfiguration",
  }),
  row(WRITE, "DeleteBucketLifecycle", "DELETE bucket?lifecycle", lifecycleSetting.delete, {
    action: "s3:PutLifecycleConfiguration",
  }),
  row(READ, "GetObjectLockConfiguration", "GET bucket?object-lock", getObjectLockConfiguration, {
    action: "s3:GetBucketObjectLockConfiguration",
  }),
  row(WRITE, "PutObjectLockConfiguration", "PUT bucket?object-lock", putObjectLockConfiguration, {
    action: "s3:PutBucketObjectLockConfiguration",
  }),
  row(READ, "GetBucketNotification", "GET bucket?notification", getBucketNotification),
  row(WRITE, "PutBucketNotification", "PUT bucket?notification", putBucketNotification),
  row(READ, "GetBucketWebsite", "GET bucket?website", websiteSetting.get),
  row(WRITE, "PutBucketWebsite", "PUT bucket?website", websiteSetting.put),
  row(WRITE, "DeleteBucketWebsite", "DELETE bucket?website", websiteSetting.delete),
  row(READ, "GetBucketEncryption", "GET bucket?encryption", encryptionSetting.get, {
    action: "s3:GetEncryptionConfiguration",
  }),
  row(WRITE, "PutBucketEncryption", "PUT bucket?encryption", encryptionSetting.put, {
    action: "s3:PutEncryptionConfiguration",
  }),
  row(WRITE, "DeleteBucketEncryption", "DELETE bucket?encryption", encryptionSetting.delete, {
    action: "s3:PutEncryptionConfiguration",
  }),
  row(READ, "GetPublicAccessBlock", "GET bucket?publicAccessBlock", publicAccessBlockSetting.get, {
    action: "s3:GetBucketPublicAccessBlock",
  }),
  row(WRITE, "PutPublicAccessBlock", "PUT bucket?publicAccessBlock", publicAccessBlockSetting.put, {
    action: "s3:PutBucketPublicAccessBlock",
  }),
  row(
    WRITE,
    "DeletePublicAccessBlock",
    "DELETE bucket?publicAccessBlock",
    publicAccessBlockSetting.delete,
    { action: "s3:PutBucketPublicAccessBlock" },
  ),
  row(READ, "GetBucketOwnershipControls", "GET bucket?ownershipControls", ownershipSetting.get),
  row(WRITE, "PutBucketOwnershipControls", "PUT bucket?ownershipControls", ownershipSetting.put),
  row(
    WRITE,
    "DeleteBucketOwnershipControls",
    "DELETE bucket?ownershipControls",
    ownershipSetting.delete,
    {
      action: "s3:PutBucketOwnershipControls",
    },
  ),
  row(READ, "GetBucketReplication", "GET bucket?replication", getBucketReplication, {
    action: "s3:GetReplicationConfiguration",
  }),
  row(WRITE, "PutBucketReplication", "PUT bucket?replication", putBucketReplication, {
    action: "s3:PutReplicationConfiguration",
  }),
  row(WRITE, "DeleteBucketReplication", "DELETE bucket?replication", deleteBucketReplication, {
    action: "s3:PutReplicationConfiguration",
  }),
  row(READ, "GetBucketLogging", "GET bucket?logging", getBucketLogging),
  row(WRITE, "PutBucketLogging", "PUT bucket?logging", putBucketLogging),
  row(READ, "GetBucketRequestPayment", "GET bucket?requestPayment", getBucketRequestPayment),
  row(WRITE, "PutBucketRequestPayment", "PUT bucket?requestPayment", putBucketRequestPayment),
  row(
    READ,
    "GetBucketAccelerateConfiguration",
    "GET bucket?accelerate",
    getBucketAccelerateConfiguration,
    { action: "s3:GetAccelerateConfiguration" },
  ),
  row(
    WRITE,
    "PutBucketAccelerateConfiguration",
    "PUT bucket?accelerate",
    putBucketAccelerateConfiguration,
    { action: "s3:PutAccelerateConfiguration" },
  ),
  row(READ, "GetBucketAnalyticsConfiguration", "GET bucket?analytics", analytics.get, {
    action: "s3:GetAnalyticsConfiguration",
  }),
  row(WRITE, "PutBucketAnalyticsConfiguration", "PUT bucket?analytics", analytics.put, {
    action: "s3:PutAnalyticsConfiguration",
  }),
  row(WRITE, "DeleteBucketAnalyticsConfiguration", "DELETE bucket?analytics", analytics.delete, {
    action: "s3:PutAnalyticsConfiguration",
  }),
  row(
    READ,
    "GetBucketIntelligentTieringConfiguration",
    "GET bucket?intelligent-tiering",
    intelligentTiering.get,
    { action: "s3:GetIntelligentTieringConfiguration" },
  ),
  row(
    WRITE,
    "PutBucketIntelligentTieringConfiguration",
    "PUT bucket?intelligent-tiering",
    intelligentTiering.put,
    { action: "s3:PutIntelligentTieringConfiguration" },
  ),
  row(
    WRITE,
    "DeleteBucketIntelligentTieringConfiguration",
    "DELETE bucket?intelligent-tiering",
    intelligentTiering.delete,
    { action: "s3:PutIntelligentTieringConfiguration" },
  ),
  row(READ, "GetBucketInventoryConfiguration", "GET bucket?inventory", inventory.get, {
    action: "s3:GetInventoryConfiguration",
  }),
  row(WRITE, "PutBucketInventoryConfiguration", "PUT bucket?inventory", inventory.put, {
    action: "s3:PutInventoryConfiguration",
  }),
  row(WRITE, "DeleteBucketInventoryConfiguration", "DELETE bucket?inventory", inventory.delete, {
    action: "s3:PutInventoryConfiguration",
  }),
  row(READ, "GetBucketMetricsConfiguration", "GET bucket?metrics", metrics.get, {
    action: "s3:GetMetricsConfiguration",
  }),
  row(WRITE, "PutBucketMetricsConfiguration", "PUT bucket?metrics", metrics.put, {
    action: "s3:PutMetricsConfiguration",
  }),
  row(WRITE, "DeleteBucketMetricsConfiguration", "DELETE bucket?metrics", metrics.delete, {
    action: "s3:PutMetricsConfiguration",
  }),
  row(READ, "QueryBucketMetadata", "GET bucket?sql", queryBucketMetadata, METADATA_QUESTION),
  row(READ, "QueryBucketMetadataBody", "POST bucket?sql", queryBucketMetadata, METADATA_QUESTION),
  row(
    READ,
    "SearchBucketVectors",
    "POST bucket?vector-search",
    searchBucketVectors,
    METADATA_QUESTION,
  ),
  row(READ, "FindSimilarObjects", "GET bucket?similar", findSimilarObjects, METADATA_QUESTION),
  row(READ, "AskBucket", "GET bucket?ask", askBucket, METADATA_QUESTION),
  row(READ, "GetBucketVectorIndex", "GET bucket?vector-index", getBucketVectorIndex, JSON_SETTING),
  row(WRITE, "PutBucketVectorIndex", "PUT bucket?vector-index", putBucketVectorIndex, JSON_SETTING),
  row(WRITE, "DeleteBucketVectorIndex", "DELETE bucket?vector-index", deleteBucketVectorIndex, {
    ...JSON_SETTING,
    action: "s3:PutBucketVectorIndex",
  }),
  row(READ, "GetBucketTriggers", "GET bucket?triggers", getBucketTriggers, JSON_SETTING),
  row(WRITE, "PutBucketTriggers", "PUT bucket?triggers", putBucketTriggers, JSON_SETTING),
  row(WRITE, "DeleteBucketTriggers", "DELETE bucket?triggers", deleteBucketTriggers, {
    ...JSON_SETTING,
    action: "s3:PutBucketTriggers",
  }),
  row(READ, "GetBucketGeoPlacement", "GET bucket?geo-placement", getGeoPlacement, JSON_SETTING),
  row(WRITE, "PutBucketGeoPlacement", "PUT bucket?geo-placement", putGeoPlacement, JSON_SETTING),
  row(WRITE, "DeleteBucketGeoPlacement", "DELETE bucket?geo-placement", deleteGeoPlacement, {
    ...JSON_SETTING,
    action: "s3:PutBucketGeoPlacement",
  }),
  row(READ, "GetBucketColdTier", "GET bucket?cold-tier", getBucketColdTier, {
    ...JSON_SETTING,
    action: "s3:GetLifecycleConfiguration",
  }),
  row(WRITE, "PutBucketColdTier", "PUT bucket?cold-tier", putBucketColdTier, {
    ...JSON_SETTING,
    action: "s3:PutLifecycleConfiguration",
  }),
  row(WRITE, "DeleteBucketColdTier", "DELETE bucket?cold-tier", deleteBucketColdTier, {
    ...JSON_SETTING,
    action: "s3:PutLifecycleConfiguration",
  }),
  row(WRITE, "SweepBucketColdTier", "POST bucket?cold-tier&sweep", sweepBucketColdTier, {
    ...JSON_SETTING,
    action: "s3:PutLifecycleConfiguration",
  }),
  row(READ, "GetBucketColdTierSweep", "GET bucket?cold-tier&sweep", getBucketColdTier, {
    ...JSON_SETTING,
    action: "s3:GetLifecycleConfiguration",
  }),
  row(READ, "StartPipeline", "POST bucket?pipeline", startPipeline, {
    ...JSON_SETTING,
    action: "s3:ListBucket",
  }),
  row(READ, "GetObjectVector", "GET object?vector", getObjectVector, {
    ...OBJECT_READING,
    errorForm: "json",
  }),
  row(WRITE, "PutObjectVector", "PUT object?vector", putObjectVector, {
    action: "s3:PutObject",
    acl: BUCKET_WRITE,
    errorForm: "json",
  }),
  row(WRITE, "DeleteObjectVector", "DELETE object?vector", deleteObjectVector, {
    action: "s3:DeleteObject",
    versionAction: "s3:DeleteObjectVersion",
    acl: BUCKET_WRITE,
    errorForm: "json",
  }),
  row(WRITE, "PutObject", "PUT object", putObject, NEW_VERSION),
  row(WRITE, "CopyObject", "PUT object?copy", copyObject, NEW_VERSION),
  row(READ, "GetObject", "GET object", getObject, OBJECT_READING),
  row(READ, "HeadObject", "HEAD object", headObject, OBJECT_READING),
  row(
    READ,
    "SelectObjectContent",
    "POST object?select&select-type",
    selectObjectContent,
    OBJECT_READING,
  ),
  row(READ, "SelectObjectRecords", "POST object?select", selectRecords, {
    ...OBJECT_READING,
    errorForm: "json",
  }),
  row(READ, "TransformObject", "POST object?transform", transformObject, {
    action: "s3:InvokeModule",
    also: { action: "s3:GetObject", versionAction: "s3:GetObjectVersion" },
    refusesAnonymous: true,
    errorForm: "json",
  }),
  row(WRITE, "InitiateObjectReplication", "POST object?replicate", initiateReplication, {
    action: "s3:InitiateReplication",
    refusesAnonymous: true,
    errorForm: "json",
  }),
  row(WRITE, "RestoreObject", "POST object?restore", restoreObject),
  row(WRITE, "DeleteObject", "DELETE object", deleteObject, {
    versionAction: "s3:DeleteObjectVersion",
    acl: BUCKET_WRITE,
  }),
  row(READ, "GetObjectAttributes", "GET object?attributes", getObjectAttributes, {
    ...OBJECT_READING,
    also: { action: "s3:GetObjectAttributes", versionAction: "s3:GetObjectVersionAttributes" },
  }),
  row(READ, "GetObjectTagging", "GET object?tagging", getObjectTagging, {
    versionAction: "s3:GetObjectVersionTagging",
  }),
  row(WRITE, "PutObjectTagging", "PUT object?tagging", putObjectTagging, {
    versionAction: "s3:PutObjectVersionTagging",
    authorizesItself: true,
    decidedByBody: { values: ["s3:requestobjecttag"] },
  }),
  row(WRITE, "DeleteObjectTagging", "DELETE object?tagging", deleteObjectTagging, {
    versionAction: "s3:DeleteObjectVersionTagging",
  }),
  row(READ, "GetObjectAcl", "GET object?acl", getObjectAcl, {
    versionAction: "s3:GetObjectVersionAcl",
    acl: ["object", "READ_ACP"],
  }),
  row(WRITE, "PutObjectAcl", "PUT object?acl", putObjectAcl, {
    versionAction: "s3:PutObjectVersionAcl",
    acl: ["object", "WRITE_ACP"],
  }),
  row(READ, "GetObjectRetention", "GET object?retention", getObjectRetention),
  row(WRITE, "PutObjectRetention", "PUT object?retention", putObjectRetention, {
    authorizesItself: true,
    decidedByBody: LOCK_IN_BODY,
  }),
  row(READ, "GetObjectLegalHold", "GET object?legal-hold", getObjectLegalHold),
  row(WRITE, "PutObjectLegalHold", "PUT object?legal-hold", putObjectLegalHold, {
    authorizesItself: true,
    decidedByBody: LOCK_IN_BODY,
  }),
  row(WRITE, "CreateMultipartUpload", "POST object?uploads", createMultipartUpload, NEW_VERSION),
  row(WRITE, "UploadPart", "PUT object?uploadId&partNumber", uploadPart, NEW_VERSION),
  row(WRITE, "UploadPartCopy", "PUT object?uploadId&partNumber&copy", uploadPartCopy, NEW_VERSION),
  row(
    WRITE,
    "CompleteMultipartUpload",
    "POST object?uploadId",
    completeMultipartUpload,
    NEW_VERSION,
  ),
  row(WRITE, "AbortMultipartUpload", "DELETE object?uploadId", abortMultipartUpload, {
    allowsInitiator: true,
  }),
  row(READ, "ListParts", "GET object?uploadId", listParts, {
    action: "s3:ListMultipartUploadParts",
    allowsInitiator: true,
  }),
];

function row(
  requires: Operation["requires"],
  name: string,
  request: string,
  handler: OperationHandler,
  more: Partial<Operation> = {},
): Operation {
  const [method, target] = request.split(" ") as [string, string];
  const [level, parameters] = target.split("?") as [Operation["level"], string | undefined];
  return {
    requires,
    name,
    level,
    method,
    parameters: parameters?.split("&") ?? [],
    action: `s3:${name}`,
    versionAction: undefined,
    also: undefined,
    acl: undefined,
    authorizesItself: false,
    decidedByBody: undefined,
    isBucketOptional: false,
    answersRegion: false,
    revealsMissing: false,
    errorForm: "s3",
    allowsInitiator: false,
    refusesAnonymous: false,
    createsVersion: false,
    handler,
    ...more,
  };
}
