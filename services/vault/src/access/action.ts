// What an operation needs a permission for: one exhaustive table.
import type { OperationName } from "../wire/operation.ts";
import type { AclPermission } from "./acl.ts";

/** The permission of an operation. */
export interface ActionRule {
  /** As policies name it; with a version id the second one. */
  action: string;
  versionAction?: string;
  /** The permission of an ACL that is enough, and whose ACL. */
  acl?: readonly [of: "bucket" | "object", permission: AclPermission];
}

/** The actions of all operations ("Actions, resources, and condition keys for Amazon S3"). */
export const actionTable: Readonly<Record<OperationName, ActionRule>> = {
  ListBuckets: { action: "s3:ListAllMyBuckets" },
  CreateBucket: { action: "s3:CreateBucket" },
  DeleteBucket: { action: "s3:DeleteBucket" },
  HeadBucket: { action: "s3:ListBucket", acl: ["bucket", "READ"] },
  ListObjects: { action: "s3:ListBucket", acl: ["bucket", "READ"] },
  ListObjectsV2: { action: "s3:ListBucket", acl: ["bucket", "READ"] },
  ListObjectVersions: { action: "s3:ListBucketVersions", acl: ["bucket", "READ"] },
  ListMultipartUploads: { action: "s3:ListBucketMultipartUploads", acl: ["bucket", "READ"] },
  DeleteObjects: { action: "s3:DeleteObject", acl: ["bucket", "WRITE"] },
  PostObject: { action: "s3:PutObject", acl: ["bucket", "WRITE"] },
  GetBucketLocation: { action: "s3:GetBucketLocation" },
  GetBucketVersioning: { action: "s3:GetBucketVersioning" },
  PutBucketVersioning: { action: "s3:PutBucketVersioning" },
  GetBucketTagging: { action: "s3:GetBucketTagging" },
  PutBucketTagging: { action: "s3:PutBucketTagging" },
  DeleteBucketTagging: { action: "s3:PutBucketTagging" },
  GetBucketAcl: { action: "s3:GetBucketAcl", acl: ["bucket", "READ_ACP"] },
  PutBucketAcl: { action: "s3:PutBucketAcl", acl: ["bucket", "WRITE_ACP"] },
  GetBucketPolicy: { action: "s3:GetBucketPolicy" },
  PutBucketPolicy: { action: "s3:PutBucketPolicy" },
  DeleteBucketPolicy: { action: "s3:DeleteBucketPolicy" },
  GetBucketPolicyStatus: { action: "s3:GetBucketPolicyStatus" },
  GetBucketCors: { action: "s3:GetBucketCORS" },
  PutBucketCors: { action: "s3:PutBucketCORS" },
  DeleteBucketCors: { action: "s3:PutBucketCORS" },
  GetBucketLifecycle: { action: "s3:GetLifecycleConfiguration" },
  PutBucketLifecycle: { action: "s3:PutLifecycleConfiguration" },
  DeleteBucketLifecycle: { action: "s3:PutLifecycleConfiguration" },
  GetObjectLockConfiguration: { action: "s3:GetBucketObjectLockConfiguration" },
  PutObjectLockConfiguration: { action: "s3:PutBucketObjectLockConfiguration" },
  GetBucketNotification: { action: "s3:GetBucketNotification" },
  PutBucketNotification: { action: "s3:PutBucketNotification" },
  GetBucketWebsite: { action: "s3:GetBucketWebsite" },
  PutBucketWebsite: { action: "s3:PutBucketWebsite" },
  DeleteBucketWebsite: { action: "s3:DeleteBucketWebsite" },
  GetBucketEncryption: { action: "s3:GetEncryptionConfiguration" },
  PutBucketEncryption: { action: "s3:PutEncryptionConfiguration" },
  DeleteBucketEncryption: { action: "s3:PutEncryptionConfiguration" },
  GetPublicAccessBlock: { action: "s3:GetBucketPublicAccessBlock" },
  PutPublicAccessBlock: { action: "s3:PutBucketPublicAccessBlock" },
  DeletePublicAccessBlock: { action: "s3:PutBucketPublicAccessBlock" },
  GetBucketOwnershipControls: { action: "s3:GetBucketOwnershipControls" },
  PutBucketOwnershipControls: { action: "s3:PutBucketOwnershipControls" },
  DeleteBucketOwnershipControls: { action: "s3:PutBucketOwnershipControls" },
  GetBucketReplication: { action: "s3:GetReplicationConfiguration" },
  PutBucketReplication: { action: "s3:PutReplicationConfiguration" },
  DeleteBucketReplication: { action: "s3:PutReplicationConfiguration" },
  GetBucketLogging: { action: "s3:GetBucketLogging" },
  PutBucketLogging: { action: "s3:PutBucketLogging" },
  GetBucketRequestPayment: { action: "s3:GetBucketRequestPayment" },
  PutBucketRequestPayment: { action: "s3:PutBucketRequestPayment" },
  GetBucketAccelerateConfiguration: { action: "s3:GetAccelerateConfiguration" },
  PutBucketAccelerateConfiguration: { action: "s3:PutAccelerateConfiguration" },
  PutObject: { action: "s3:PutObject", acl: ["bucket", "WRITE"] },
  CopyObject: { action: "s3:PutObject", acl: ["bucket", "WRITE"] },
  GetObject: {
    action: "s3:GetObject",
    versionAction: "s3:GetObjectVersion",
    acl: ["object", "READ"],
  },
  HeadObject: {
    action: "s3:GetObject",
    versionAction: "s3:GetObjectVersion",
    acl: ["object", "READ"],
  },
  DeleteObject: {
    action: "s3:DeleteObject",
    versionAction: "s3:DeleteObjectVersion",
    acl: ["bucket", "WRITE"],
  },
  GetObjectAttributes: {
    action: "s3:GetObject",
    versionAction: "s3:GetObjectVersion",
    acl: ["object", "READ"],
  },
  GetObjectTagging: { action: "s3:GetObjectTagging", versionAction: "s3:GetObjectVersionTagging" },
  PutObjectTagging: { action: "s3:PutObjectTagging", versionAction: "s3:PutObjectVersionTagging" },
  DeleteObjectTagging: {
    action: "s3:DeleteObjectTagging",
    versionAction: "s3:DeleteObjectVersionTagging",
  },
  GetObjectAcl: {
    action: "s3:GetObjectAcl",
    versionAction: "s3:GetObjectVersionAcl",
    acl: ["object", "READ_ACP"],
  },
  PutObjectAcl: {
    action: "s3:PutObjectAcl",
    versionAction: "s3:PutObjectVersionAcl",
    acl: ["object", "WRITE_ACP"],
  },
  GetObjectRetention: { action: "s3:GetObjectRetention" },
  PutObjectRetention: { action: "s3:PutObjectRetention" },
  GetObjectLegalHold: { action: "s3:GetObjectLegalHold" },
  PutObjectLegalHold: { action: "s3:PutObjectLegalHold" },
  CreateMultipartUpload: { action: "s3:PutObject", acl: ["bucket", "WRITE"] },
  UploadPart: { action: "s3:PutObject", acl: ["bucket", "WRITE"] },
  UploadPartCopy: { action: "s3:PutObject", acl: ["bucket", "WRITE"] },
  CompleteMultipartUpload: { action: "s3:PutObject", acl: ["bucket", "WRITE"] },
  AbortMultipartUpload: { action: "s3:AbortMultipartUpload" },
  ListParts: { action: "s3:ListMultipartUploadParts" },
};
