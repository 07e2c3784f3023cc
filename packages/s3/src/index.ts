// A client of S3-compatible stores, for parts of the platform that keep data in them.
export {
  checkEndpoint,
  S3Client,
  type S3Attempt,
  type S3Call,
  type S3Checksum,
  type S3ClientOptions,
  type S3Credentials,
  type S3ListedObject,
  type S3ObjectHead,
  type S3OpenAnswer,
  type S3Page,
  type S3PutOptions,
  type S3Reply,
  type S3RequestOptions,
  type S3Written,
} from "./client/client.ts";
export { S3Stream, type S3Trailer } from "./client/stream.ts";
export { S3ClientError, type S3ClientErrorCode, type S3Operation } from "./client/error.ts";
export {
  discardUploads,
  uploadObject,
  type UploadOptions,
  type UploadSource,
} from "./client/upload.ts";
