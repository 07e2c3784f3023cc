// Schemas that the routes of buckets share.
import { z } from "zod";

/** Group in the documentation. */
export const BUCKET_TAG = "Buckets";
/** Group of the routes of objects and uploads. */
export const OBJECT_TAG = "Objects";

const bucketName = z.string().min(1).max(63);

/** The bucket in paths. */
export const bucketParams = z.object({ bucket: bucketName.describe("Name of the bucket.") });

/** A key: 1 to 1 024 bytes, opaque. */
export const keySchema = z.string().min(1).max(1_024);

/** A version id, or `null`. */
export const versionSchema = z
  .string()
  .regex(/^(?:null|[A-Za-z0-9_-]{32})$/, "a version id, or null");

/** Refusals of every operation on a bucket. */
export const BUCKET_PROBLEMS: Readonly<Record<number, string>> = {
  403: "S3 would refuse it: no policy allows it, or one denies it.",
  404: "The bucket does not exist.",
};
