// Buckets of storage.
import { ApiError, type ApiClient } from "./api-client.ts";

const OBJECT_ACTIONS = [
  "s3:GetObject",
  "s3:PutObject",
  "s3:DeleteObject",
  "s3:AbortMultipartUpload",
  "s3:ListMultipartUploadParts",
];
const BUCKET_ACTIONS = ["s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"];

/** Creates a bucket; false if it exists. */
export async function createBucket(storage: ApiClient, name: string): Promise<boolean> {
  try {
    await storage.call("POST", "/api/v1/buckets", { name });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) return false;
    throw error;
  }
}

/** A policy for everything that programs do with the objects of a bucket. */
export function createBucketPolicy(bucket: string) {
  const resource = `arn:aws:s3:::${bucket}`;
  return {
    Version: "2012-10-17",
    Statement: [
      { Effect: "Allow", Action: BUCKET_ACTIONS, Resource: resource },
      { Effect: "Allow", Action: OBJECT_ACTIONS, Resource: `${resource}/*` },
    ],
  };
}

/** A policy for reading one object of a bucket. */
export function createReaderPolicy(bucket: string, key: string) {
  const resource = `arn:aws:s3:::${bucket}`;
  return {
    Version: "2012-10-17",
    Statement: [
      // Without it, a missing object is denied rather than not found.
      { Effect: "Allow", Action: ["s3:ListBucket"], Resource: resource },
      { Effect: "Allow", Action: ["s3:GetObject"], Resource: `${resource}/${key}` },
    ],
  };
}
