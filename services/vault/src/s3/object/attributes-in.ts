// The attributes of a new object in a request: headers, metadata, tags, ACL, lock, encryption.
import type { Acl } from "../../model/acl.ts";
import type { Retention } from "../../model/lock.ts";
import type { ContentHeaders, ObjectAttributes } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import { readAclFields } from "../acl-document.ts";
import { requirePermission } from "../authorization.ts";
import { getBucket, getOwner, type OperationContext } from "../context.ts";
import { readTagging } from "../tagging-document.ts";
import { readVectorField } from "../vector-value.ts";
import type { RequestFields } from "../wire/fields.ts";
import { readEncryption } from "./encryption.ts";
import { readReplicaGeo, readReplicaSource } from "./replica.ts";

const METADATA_PREFIX = "x-amz-meta-";
/** Size limit of names without their prefix, and values ("Working with object metadata"). */
const METADATA_BYTES_MAX = 2_048;
const STORAGE_CLASSES: ReadonlySet<string> = new Set([
  "STANDARD",
  "REDUCED_REDUNDANCY",
  "STANDARD_IA",
  "GLACIER_IR",
  "ONEZONE_IA",
  "INTELLIGENT_TIERING",
]);

/** Reads all attributes, and checks the permissions that some of them need. */
export async function readAttributes(
  context: OperationContext,
  fields: RequestFields = context.fields,
): Promise<ObjectAttributes> {
  const bucket = getBucket(context);
  const attributes: ObjectAttributes = {
    headers: readContentHeaders(fields),
    metadata: readMetadata(fields),
    owner: getOwner(context.api),
  };
  const tagging = fields.get("x-amz-tagging");
  if (tagging !== undefined) {
    await askFor(context, "s3:PutObjectTagging", BY_BUCKET_ACL);
    attributes.tags = readTagging(tagging);
  }
  const storageClass = fields.getFilled("x-amz-storage-class");
  if (storageClass !== undefined) {
    if (!STORAGE_CLASSES.has(storageClass)) throw new S3Error("InvalidStorageClass");
    attributes.storageClass = storageClass;
  }
  const redirect = fields.get("x-amz-website-redirect-location");
  if (redirect !== undefined) {
    if (!/^(?:\/|https?:\/\/)/.test(redirect) || redirect.length > 2_048) {
      throw new S3Error(
        "InvalidArgument",
        "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.",
      );
    }
    attributes.websiteRedirect = redirect;
  }
  const vector = fields.getFilled("x-amz-vector");
  if (vector !== undefined) attributes.vector = readVectorField(vector);
  const acl: Acl | undefined = readAclFields(fields, bucket, context.api);
  if (acl !== undefined) {
    await askFor(context, "s3:PutObjectAcl", BY_BUCKET_ACL);
    attributes.acl = acl;
  }
  const retention = readRetentionFields(fields, context.api.clock.now());
  if (retention !== undefined) {
    await askFor(context, "s3:PutObjectRetention");
    attributes.retention = retention;
  }
  const legalHold = readLegalHoldField(fields);
  if (legalHold !== undefined) {
    await askFor(context, "s3:PutObjectLegalHold");
    attributes.legalHold = legalHold;
  }
  if ((retention !== undefined || legalHold !== undefined) && !bucket.objectLockEnabled) {
    throw new S3Error("InvalidRequest", "Bucket is missing Object Lock Configuration");
  }
  const source = await readReplicaSource(context, "s3:ReplicateObject");
  if (source !== undefined) attributes.source = source;
  const geo = readReplicaGeo(context);
  if (geo !== undefined) attributes.geo = geo;
  const encryption = readEncryption(context, fields, bucket);
  if (encryption !== undefined) attributes.encryption = encryption;
  return attributes;
}

/** Callers that may write by the bucket's ACL may set all attributes; a policy grants each of them separately. */
const BY_BUCKET_ACL = { of: "bucket", permission: "WRITE" } as const;

async function askFor(
  context: OperationContext,
  action: string,
  acl?: typeof BY_BUCKET_ACL,
): Promise<void> {
  const { bucket, bucketName, key } = context;
  await requirePermission(context, { action, bucket, bucketName, key, acl });
}

/** The headers that are stored with an object; `aws-chunked` applies to the request only. */
function readContentHeaders(fields: RequestFields): ContentHeaders {
  const headers: ContentHeaders = {};
  const take = (name: string, set: (value: string) => void): void => {
    const value = fields.get(name);
    if (value !== undefined && value !== "") set(value);
  };
  take("content-type", (value) => (headers.contentType = value));
  take("cache-control", (value) => (headers.cacheControl = value));
  take("content-disposition", (value) => (headers.contentDisposition = value));
  take("content-language", (value) => (headers.contentLanguage = value));
  take("expires", (value) => (headers.expires = value));
  take("content-encoding", (value) => {
    const names = value.split(",").map((name) => name.trim());
    const rest = names.filter((name) => name !== "" && name.toLowerCase() !== "aws-chunked");
    if (rest.length === names.length) headers.contentEncoding = value;
    else if (rest.length > 0) headers.contentEncoding = rest.join(",");
  });
  return headers;
}

function readMetadata(fields: RequestFields): Record<string, string> {
  const metadata: [string, string][] = [];
  let bytes = 0;
  for (const [name, value] of fields.entries()) {
    if (!name.startsWith(METADATA_PREFIX)) continue;
    const short = name.slice(METADATA_PREFIX.length);
    bytes += short.length + value.length;
    metadata.push([short, value]);
  }
  if (bytes > METADATA_BYTES_MAX) {
    throw new S3Error("MetadataTooLarge", {
      elements: [
        ["Size", String(bytes)],
        ["MaxSizeAllowed", String(METADATA_BYTES_MAX)],
      ],
    });
  }
  return Object.fromEntries(metadata);
}

function readRetentionFields(fields: RequestFields, nowMs: number): Retention | undefined {
  const mode = fields.get("x-amz-object-lock-mode");
  const until = fields.get("x-amz-object-lock-retain-until-date");
  if (mode === undefined && until === undefined) return undefined;
  if (mode === undefined || until === undefined) {
    throw new S3Error(
      "InvalidArgument",
      "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied",
    );
  }
  return checkRetention(mode, until, nowMs);
}

/** Parses a retention of a header or a document. Throws InvalidArgument if it is invalid or in the past. */
export function checkRetention(mode: string, until: string, nowMs: number): Retention {
  if (mode !== "GOVERNANCE" && mode !== "COMPLIANCE") {
    throw new S3Error("InvalidArgument", "Unknown wormMode directive");
  }
  if (!isTimestamp(until)) {
    throw new S3Error(
      "InvalidArgument",
      "The retain until date must be provided in ISO 8601 format",
    );
  }
  const untilMs = Date.parse(until);
  if (untilMs <= nowMs) {
    throw new S3Error("InvalidArgument", "The retain until date must be in the future!");
  }
  return { mode, untilMs };
}

/** True if a text is an ISO 8601 time with its zone, as in documents, of an existing day. */
export function isTimestamp(text: string): boolean {
  const match = /^(\d{4}-\d\d)-(\d\d)T\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/.exec(text);
  if (match === null || Number.isNaN(Date.parse(text))) return false;
  // A day beyond the end of its month would roll over to the next month.
  return new Date(`${match[1]}-${match[2]}T00:00:00Z`).getUTCDate() === Number(match[2]);
}

function readLegalHoldField(fields: RequestFields): boolean | undefined {
  const value = fields.get("x-amz-object-lock-legal-hold");
  if (value === undefined) return undefined;
  if (value !== "ON" && value !== "OFF") {
    throw new S3Error("InvalidArgument", "Legal Hold must be either of 'ON' or 'OFF'");
  }
  return value === "ON";
}
