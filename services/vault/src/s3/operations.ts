// Which function carries out which operation: exhaustive, so that a row of the wire's table without one does not compile.
import type { OperationName } from "./wire/operation.ts";
import { getBucketAcl, putBucketAcl } from "./bucket/acl.ts";
import {
  createBucket,
  deleteBucket,
  getBucketLocation,
  headBucket,
  listBuckets,
} from "./bucket/bucket.ts";
import { deleteBucketCors, getBucketCors, putBucketCors } from "./bucket/cors.ts";
import {
  deleteBucketEncryption,
  getBucketEncryption,
  putBucketEncryption,
} from "./bucket/encryption.ts";
import {
  deleteBucketLifecycle,
  getBucketLifecycle,
  putBucketLifecycle,
} from "./bucket/lifecycle.ts";
import { listObjectVersions, listObjects, listObjectsV2 } from "./bucket/list-objects.ts";
import { getBucketNotification, putBucketNotification } from "./bucket/notification.ts";
import { getObjectLockConfiguration, putObjectLockConfiguration } from "./bucket/object-lock.ts";
import {
  deleteBucketOwnershipControls,
  getBucketOwnershipControls,
  putBucketOwnershipControls,
} from "./bucket/ownership.ts";
import {
  deleteBucketPolicy,
  getBucketPolicy,
  getBucketPolicyStatus,
  putBucketPolicy,
} from "./bucket/policy.ts";
import {
  deletePublicAccessBlock,
  getPublicAccessBlock,
  putPublicAccessBlock,
} from "./bucket/public-access-block.ts";
import { deleteBucketTagging, getBucketTagging, putBucketTagging } from "./bucket/tagging.ts";
import {
  analytics,
  deleteBucketReplication,
  getBucketAccelerateConfiguration,
  getBucketLogging,
  getBucketReplication,
  getBucketRequestPayment,
  intelligentTiering,
  inventory,
  metrics,
  putBucketAccelerateConfiguration,
  putBucketLogging,
  putBucketReplication,
  putBucketRequestPayment,
} from "./bucket/unset.ts";
import { getBucketVersioning, putBucketVersioning } from "./bucket/versioning.ts";
import { deleteBucketWebsite, getBucketWebsite, putBucketWebsite } from "./bucket/website.ts";
import type { OperationHandler } from "./context.ts";
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
import { deleteObjectTagging, getObjectTagging, putObjectTagging } from "./object/tagging.ts";

/** All operations. */
export const operations: Readonly<Record<OperationName, OperationHandler>> = {
  ListBuckets: listBuckets,
  CreateBucket: createBucket,
  DeleteBucket: deleteBucket,
  HeadBucket: headBucket,
  ListObjects: listObjects,
  ListObjectsV2: listObjectsV2,
  ListObjectVersions: listObjectVersions,
  ListMultipartUploads: listMultipartUploads,
  DeleteObjects: deleteObjects,
  PostObject: postObject,
  GetBucketLocation: getBucketLocation,
  GetBucketVersioning: getBucketVersioning,
  PutBucketVersioning: putBucketVersioning,
  GetBucketTagging: getBucketTagging,
  PutBucketTagging: putBucketTagging,
  DeleteBucketTagging: deleteBucketTagging,
  GetBucketAcl: getBucketAcl,
  PutBucketAcl: putBucketAcl,
  GetBucketPolicy: getBucketPolicy,
  PutBucketPolicy: putBucketPolicy,
  DeleteBucketPolicy: deleteBucketPolicy,
  GetBucketPolicyStatus: getBucketPolicyStatus,
  GetBucketCors: getBucketCors,
  PutBucketCors: putBucketCors,
  DeleteBucketCors: deleteBucketCors,
  GetBucketLifecycle: getBucketLifecycle,
  PutBucketLifecycle: putBucketLifecycle,
  DeleteBucketLifecycle: deleteBucketLifecycle,
  GetObjectLockConfiguration: getObjectLockConfiguration,
  PutObjectLockConfiguration: putObjectLockConfiguration,
  GetBucketNotification: getBucketNotification,
  PutBucketNotification: putBucketNotification,
  GetBucketWebsite: getBucketWebsite,
  PutBucketWebsite: putBucketWebsite,
  DeleteBucketWebsite: deleteBucketWebsite,
  GetBucketEncryption: getBucketEncryption,
  PutBucketEncryption: putBucketEncryption,
  DeleteBucketEncryption: deleteBucketEncryption,
  GetPublicAccessBlock: getPublicAccessBlock,
  PutPublicAccessBlock: putPublicAccessBlock,
  DeletePublicAccessBlock: deletePublicAccessBlock,
  GetBucketOwnershipControls: getBucketOwnershipControls,
  PutBucketOwnershipControls: putBucketOwnershipControls,
  DeleteBucketOwnershipControls: deleteBucketOwnershipControls,
  GetBucketReplication: getBucketReplication,
  PutBucketReplication: putBucketReplication,
  DeleteBucketReplication: deleteBucketReplication,
  GetBucketLogging: getBucketLogging,
  PutBucketLogging: putBucketLogging,
  GetBucketRequestPayment: getBucketRequestPayment,
  PutBucketRequestPayment: putBucketRequestPayment,
  GetBucketAccelerateConfiguration: getBucketAccelerateConfiguration,
  PutBucketAccelerateConfiguration: putBucketAccelerateConfiguration,
  GetBucketAnalyticsConfiguration: analytics.get,
  PutBucketAnalyticsConfiguration: analytics.put,
  DeleteBucketAnalyticsConfiguration: analytics.delete,
  GetBucketIntelligentTieringConfiguration: intelligentTiering.get,
  PutBucketIntelligentTieringConfiguration: intelligentTiering.put,
  DeleteBucketIntelligentTieringConfiguration: intelligentTiering.delete,
  GetBucketInventoryConfiguration: inventory.get,
  PutBucketInventoryConfiguration: inventory.put,
  DeleteBucketInventoryConfiguration: inventory.delete,
  GetBucketMetricsConfiguration: metrics.get,
  PutBucketMetricsConfiguration: metrics.put,
  DeleteBucketMetricsConfiguration: metrics.delete,
  PutObject: putObject,
  CopyObject: copyObject,
  GetObject: getObject,
  HeadObject: headObject,
  DeleteObject: deleteObject,
  GetObjectAttributes: getObjectAttributes,
  GetObjectTagging: getObjectTagging,
  PutObjectTagging: putObjectTagging,
  DeleteObjectTagging: deleteObjectTagging,
  GetObjectAcl: getObjectAcl,
  PutObjectAcl: putObjectAcl,
  GetObjectRetention: getObjectRetention,
  PutObjectRetention: putObjectRetention,
  GetObjectLegalHold: getObjectLegalHold,
  PutObjectLegalHold: putObjectLegalHold,
  CreateMultipartUpload: createMultipartUpload,
  UploadPart: uploadPart,
  UploadPartCopy: uploadPartCopy,
  CompleteMultipartUpload: completeMultipartUpload,
  AbortMultipartUpload: abortMultipartUpload,
  ListParts: listParts,
};
