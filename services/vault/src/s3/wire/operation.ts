// Which operation a request asks for: one table of method, level and subresource.
import { S3Error } from "../../model/s3-error.ts";
import { decodeUri, parseQuery, type QueryPair } from "../sigv4/index.ts";
import { isPresigned, type RequestFields, toPresignedField } from "./fields.ts";

type Level = "service" | "bucket" | "object";

const KEY_BYTES_MAX = 1_024;

/**
 * Level, method, query names that must all be there, name of the operation. `copy` names stand for a request with
 * `x-amz-copy-source`. The row with the most names wins, so order does not matter.
 */
const TABLE = [
  ["service", "GET", "", "ListBuckets"],
  ["bucket", "PUT", "", "CreateBucket"],
  ["bucket", "DELETE", "", "DeleteBucket"],
  ["bucket", "HEAD", "", "HeadBucket"],
  ["bucket", "GET", "", "ListObjects"],
  ["bucket", "GET", "list-type", "ListObjectsV2"],
  ["bucket", "GET", "versions", "ListObjectVersions"],
  ["bucket", "GET", "uploads", "ListMultipartUploads"],
  ["bucket", "POST", "delete", "DeleteObjects"],
  ["bucket", "POST", "", "PostObject"],
  ["bucket", "GET", "location", "GetBucketLocation"],
  ["bucket", "GET", "versioning", "GetBucketVersioning"],
  ["bucket", "PUT", "versioning", "PutBucketVersioning"],
  ["bucket", "GET", "tagging", "GetBucketTagging"],
  ["bucket", "PUT", "tagging", "PutBucketTagging"],
  ["bucket", "DELETE", "tagging", "DeleteBucketTagging"],
  ["bucket", "GET", "acl", "GetBucketAcl"],
  ["bucket", "PUT", "acl", "PutBucketAcl"],
  ["bucket", "GET", "policy", "GetBucketPolicy"],
  ["bucket", "PUT", "policy", "PutBucketPolicy"],
  ["bucket", "DELETE", "policy", "DeleteBucketPolicy"],
  ["bucket", "GET", "policyStatus", "GetBucketPolicyStatus"],
  ["bucket", "GET", "cors", "GetBucketCors"],
  ["bucket", "PUT", "cors", "PutBucketCors"],
  ["bucket", "DELETE", "cors", "DeleteBucketCors"],
  ["bucket", "GET", "lifecycle", "GetBucketLifecycle"],
  ["bucket", "PUT", "lifecycle", "PutBucketLifecycle"],
  ["bucket", "DELETE", "lifecycle", "DeleteBucketLifecycle"],
  ["bucket", "GET", "object-lock", "GetObjectLockConfiguration"],
  ["bucket", "PUT", "object-lock", "PutObjectLockConfiguration"],
  ["bucket", "GET", "notification", "GetBucketNotification"],
  ["bucket", "PUT", "notification", "PutBucketNotification"],
  ["bucket", "GET", "website", "GetBucketWebsite"],
  ["bucket", "PUT", "website", "PutBucketWebsite"],
  ["bucket", "DELETE", "website", "DeleteBucketWebsite"],
  ["bucket", "GET", "encryption", "GetBucketEncryption"],
  ["bucket", "PUT", "encryption", "PutBucketEncryption"],
  ["bucket", "DELETE", "encryption", "DeleteBucketEncryption"],
  ["bucket", "GET", "publicAccessBlock", "GetPublicAccessBlock"],
  ["bucket", "PUT", "publicAccessBlock", "PutPublicAccessBlock"],
  ["bucket", "DELETE", "publicAccessBlock", "DeletePublicAccessBlock"],
  ["bucket", "GET", "ownershipControls", "GetBucketOwnershipControls"],
  ["bucket", "PUT", "ownershipControls", "PutBucketOwnershipControls"],
  ["bucket", "DELETE", "ownershipControls", "DeleteBucketOwnershipControls"],
  ["bucket", "GET", "replication", "GetBucketReplication"],
  ["bucket", "PUT", "replication", "PutBucketReplication"],
  ["bucket", "DELETE", "replication", "DeleteBucketReplication"],
  ["bucket", "GET", "logging", "GetBucketLogging"],
  ["bucket", "PUT", "logging", "PutBucketLogging"],
  ["bucket", "GET", "requestPayment", "GetBucketRequestPayment"],
  ["bucket", "PUT", "requestPayment", "PutBucketRequestPayment"],
  ["bucket", "GET", "accelerate", "GetBucketAccelerateConfiguration"],
  ["bucket", "PUT", "accelerate", "PutBucketAccelerateConfiguration"],
  ["bucket", "GET", "analytics", "GetBucketAnalyticsConfiguration"],
  ["bucket", "PUT", "analytics", "PutBucketAnalyticsConfiguration"],
  ["bucket", "DELETE", "analytics", "DeleteBucketAnalyticsConfiguration"],
  ["bucket", "GET", "intelligent-tiering", "GetBucketIntelligentTieringConfiguration"],
  ["bucket", "PUT", "intelligent-tiering", "PutBucketIntelligentTieringConfiguration"],
  ["bucket", "DELETE", "intelligent-tiering", "DeleteBucketIntelligentTieringConfiguration"],
  ["bucket", "GET", "inventory", "GetBucketInventoryConfiguration"],
  ["bucket", "PUT", "inventory", "PutBucketInventoryConfiguration"],
  ["bucket", "DELETE", "inventory", "DeleteBucketInventoryConfiguration"],
  ["bucket", "GET", "metrics", "GetBucketMetricsConfiguration"],
  ["bucket", "PUT", "metrics", "PutBucketMetricsConfiguration"],
  ["bucket", "DELETE", "metrics", "DeleteBucketMetricsConfiguration"],
  ["object", "PUT", "", "PutObject"],
  ["object", "PUT", "copy", "CopyObject"],
  ["object", "GET", "", "GetObject"],
  ["object", "HEAD", "", "HeadObject"],
  ["object", "DELETE", "", "DeleteObject"],
  ["object", "GET", "attributes", "GetObjectAttributes"],
  ["object", "GET", "tagging", "GetObjectTagging"],
  ["object", "PUT", "tagging", "PutObjectTagging"],
  ["object", "DELETE", "tagging", "DeleteObjectTagging"],
  ["object", "GET", "acl", "GetObjectAcl"],
  ["object", "PUT", "acl", "PutObjectAcl"],
  ["object", "GET", "retention", "GetObjectRetention"],
  ["object", "PUT", "retention", "PutObjectRetention"],
  ["object", "GET", "legal-hold", "GetObjectLegalHold"],
  ["object", "PUT", "legal-hold", "PutObjectLegalHold"],
  ["object", "POST", "uploads", "CreateMultipartUpload"],
  ["object", "PUT", "uploadId partNumber", "UploadPart"],
  ["object", "PUT", "uploadId partNumber copy", "UploadPartCopy"],
  ["object", "POST", "uploadId", "CompleteMultipartUpload"],
  ["object", "DELETE", "uploadId", "AbortMultipartUpload"],
  ["object", "GET", "uploadId", "ListParts"],
] as const satisfies readonly (readonly [Level, string, string, string])[];

/** The table once more, its names apart. */
const ROWS = TABLE.map(([level, method, names, name]) => {
  return { level, method, names: names === "" ? [] : names.split(" "), name };
});
/** The operations that are asked for without a name, by method. */
const PLAIN: Readonly<Record<Level, ReadonlyMap<string, OperationName>>> = {
  service: listPlain("service"),
  bucket: listPlain("bucket"),
  object: listPlain("object"),
};

function listPlain(level: Level): Map<string, OperationName> {
  const rows = ROWS.filter((row) => row.level === level && row.names.length === 0);
  return new Map(rows.map((row) => [row.method, row.name]));
}

/** The name of an operation, as the API reference has it. */
export type OperationName = (typeof TABLE)[number][3];

/** Operations that make versions, and so cannot be about one. */
const MAKING: ReadonlySet<OperationName> = new Set([
  "PutObject",
  "CopyObject",
  "CreateMultipartUpload",
  "UploadPart",
  "UploadPartCopy",
  "CompleteMultipartUpload",
]);

/** All operations, in the order of the table. */
export const operationNames: readonly OperationName[] = TABLE.map((row) => row[3]);

/** Names that make another operation of a request, built or not; they are never taken for parameters. */
const SUBRESOURCES: ReadonlySet<string> = new Set([
  ...TABLE.flatMap((row) => row[2].split(" ")).filter((name) => name !== "" && name !== "copy"),
  "abac",
  "append",
  "ask",
  "cold-tier",
  "events",
  "geo-placement",
  "metadataConfiguration",
  "metadataInventoryTable",
  "metadataJournalTable",
  "metadataTable",
  "pipeline",
  "renameObject",
  "encryption-context",
  "restore",
  "select",
  "session",
  "similar",
  "sql",
  "sweep",
  "torrent",
  "transform",
  "triggers",
  "vector-index",
  "vector-search",
]);
// On reads it asks for one part of an object.
const PARAMETERS: ReadonlySet<string> = new Set(["partNumber"]);

/** Parameters of URLs that were presigned with Signature Version 2. */
const OLDER_PARAMETERS: ReadonlySet<string> = new Set(["AWSAccessKeyId", "Signature", "Expires"]);

/** Names by which writes may be refined; any other name on a write is refused, never ignored. */
const WRITE_PARAMETERS: ReadonlySet<string> = new Set(["versionId", "partNumber", "uploadId"]);

/** Subresources of which a bucket has several, each with an `id`. */
const IDENTIFIED: ReadonlySet<string> = new Set([
  "analytics",
  "intelligent-tiering",
  "inventory",
  "metrics",
]);

/** A request's operation and what it is about. */
export type ResolvedRequest = {
  readonly name: OperationName;
  /** "" for ListBuckets. */
  readonly bucket: string;
  /** "" on bucket level. */
  readonly key: string;
  readonly query: RequestQuery;
  /** Names of parameters that mean nothing to it. */
  readonly ignored: ReadonlySet<string>;
};

/** A query by name; of a repeated name the first value counts. */
export class RequestQuery {
  readonly pairs: readonly QueryPair[];
  readonly #byName = new Map<string, string>();

  constructor(pairs: readonly QueryPair[]) {
    this.pairs = pairs;
    for (const [name, value] of pairs) if (!this.#byName.has(name)) this.#byName.set(name, value);
  }

  get(name: string): string | undefined {
    return this.#byName.get(name);
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }
}

/** What a target names. */
export interface Address {
  level: Level;
  bucket: string;
  key: string;
}

/** Reads a raw query. */
export function readQuery(raw: string): RequestQuery {
  return new RequestQuery(parseQuery(raw));
}

/**
 * The bucket and key of a target: by the Host, where that is a name below `domain`, else by the path. Throws InvalidURI.
 */
export function readAddress(rawPath: string, host: string, domain: string | undefined): Address {
  const hosted = readHostedBucket(host, domain);
  if (hosted !== undefined) {
    const key = decodeUri(rawPath.slice(1));
    return { level: key === "" ? "bucket" : "object", bucket: hosted, key };
  }
  if (rawPath === "/" || rawPath === "") return { level: "service", bucket: "", key: "" };
  const slash = rawPath.indexOf("/", 1);
  const bucket = decodeUri(slash < 0 ? rawPath.slice(1) : rawPath.slice(1, slash));
  const key = slash < 0 ? "" : decodeUri(rawPath.slice(slash + 1));
  return { level: key === "" ? "bucket" : "object", bucket, key };
}

/** The bucket that a Host names below `domain`; undefined where it names none. */
export function readHostedBucket(host: string, domain: string | undefined): string | undefined {
  if (domain === undefined) return undefined;
  const name = host.replace(/:\d+$/, "").toLowerCase();
  return name.endsWith(`.${domain}`) ? name.slice(0, -domain.length - 1) : undefined;
}

/**
 * The operation of a request. Throws NotImplemented for subresources that are unknown or not built, MethodNotAllowed for
 * methods that do not fit, InvalidArgument for subresources that exclude each other.
 */
export function resolveOperation(
  method: string,
  address: Address,
  query: RequestQuery,
  fields: RequestFields,
): ResolvedRequest {
  const asked = new Set<string>();
  const ignored = new Set<string>();
  const isSigned = isPresigned(query.pairs);
  const isOlder = query.has("AWSAccessKeyId");
  for (const [given] of query.pairs) {
    // The specification's own name for retention.
    const name = given === "lock" && address.level === "object" ? "retention" : given;
    if (SUBRESOURCES.has(name)) asked.add(name);
    else if (name === "id" && query.pairs.some(([other]) => IDENTIFIED.has(other))) continue;
    else if (isOlder && OLDER_PARAMETERS.has(name)) continue;
    else if (isSigned && toPresignedField(name) !== undefined) continue;
    else if (isIgnored(method, name, query.get(given)!)) ignored.add(name);
  }
  requireKeyLength(address.key);
  if (fields.has("x-amz-copy-source") && method === "PUT" && address.level === "object") {
    asked.add("copy");
  }
  const name = findOperation(method, address.level, asked);
  if (query.has("versionId") && MAKING.has(name)) {
    throw new S3Error("InvalidArgument", {
      message: "This operation does not accept a version-id.",
      elements: [
        ["ArgumentName", "versionId"],
        ["ArgumentValue", query.get("versionId")!.slice(0, 128)],
      ],
    });
  }
  return { name, bucket: address.bucket, key: address.key, query, ignored };
}

function findOperation(method: string, level: Level, asked: ReadonlySet<string>): OperationName {
  const plain = asked.size === 0 ? PLAIN[level].get(method) : undefined;
  if (plain !== undefined) return plain;
  let best: { name: OperationName; names: readonly string[] } | undefined;
  let isKnownElsewhere = false;
  for (const row of ROWS) {
    const { names } = row;
    if (row.level !== level || !names.every((item) => asked.has(item))) continue;
    if (row.method === method) {
      if (best === undefined || names.length > best.names.length) best = row;
    } else if (names.length > 0) {
      isKnownElsewhere = true;
    }
  }
  const isRead = method === "GET" || method === "HEAD";
  const rest = [...asked].filter(
    (item) => !best?.names.includes(item) && !(isRead && PARAMETERS.has(item)),
  );
  if (best !== undefined && rest.length === 0) return best.name;
  if (rest.some((item) => !isBuilt(level, item))) throw new S3Error("NotImplemented");
  if (best !== undefined && best.names.length > 0) {
    throw new S3Error(
      "InvalidArgument",
      `Conflicting query string parameters: ${[...best.names, ...rest].join(", ")}`,
    );
  }
  if (isKnownElsewhere || best === undefined) throw notAllowed(method, level, asked);
  throw new S3Error("InvalidArgument", `${rest.join(", ")} does not stand alone.`);
}

// With the methods that there are, as RFC 9110 section 15.5.6 wants them.
function notAllowed(method: string, level: Level, asked: ReadonlySet<string>): S3Error {
  const isNamed = ROWS.some((row) => row.level === level && row.names.some((it) => asked.has(it)));
  const fitting = ROWS.filter(
    ({ level: rowLevel, names }) =>
      rowLevel === level && names.length > 0 === isNamed && names.every((item) => asked.has(item)),
  );
  const methods = new Set(fitting.map((row) => row.method));
  return new S3Error("MethodNotAllowed", {
    headers: [["Allow", [...methods].join(", ")]],
    elements: [
      ["Method", method],
      ["ResourceType", level.toUpperCase()],
    ],
  });
}

// What no key can be is told so by every operation, and not that there is none of the name.
function requireKeyLength(key: string): void {
  // A UTF-16 unit is three bytes at most.
  if (key.length * 3 <= KEY_BYTES_MAX) return;
  const size = Buffer.byteLength(key);
  if (size <= KEY_BYTES_MAX) return;
  throw new S3Error("KeyTooLongError", {
    elements: [
      ["Size", String(size)],
      ["MaxSizeAllowed", String(KEY_BYTES_MAX)],
    ],
  });
}

function isBuilt(level: Level, name: string): boolean {
  return TABLE.some(([rowLevel, , names]) => rowLevel === level && names.split(" ").includes(name));
}

// Reads ignore parameters that mean nothing (a page may add `?v=3` to a picture's address), writes refuse them. Those that
// begin with `x-` are the caller's notes for the access log ("Adding custom log information" in the user guide), unless
// they stand for fields.
function isIgnored(method: string, name: string, value: string): boolean {
  if (/^x-/i.test(name)) return !/^x-(?:amz|store)-/i.test(name);
  const isRead = method === "GET" || method === "HEAD";
  if ((isRead ? READ_PARAMETERS : WRITE_PARAMETERS).has(name)) return false;
  // Bun presigns what an answer is to say of the body for writes as well.
  if ((isRead && value !== "") || name.startsWith("response-")) return true;
  throw new S3Error(
    "NotImplemented",
    `The query parameter ${JSON.stringify(name.slice(0, 64))} is not implemented.`,
  );
}

/** Names by which reads may be refined. */
const READ_PARAMETERS: ReadonlySet<string> = new Set([
  "prefix",
  "delimiter",
  "marker",
  "start-after",
  "continuation-token",
  "key-marker",
  "version-id-marker",
  "upload-id-marker",
  "part-number-marker",
  "encoding-type",
  "fetch-owner",
  "max-keys",
  "max-parts",
  "max-uploads",
  "max-buckets",
  "bucket-region",
  "versionId",
  "response-content-type",
  "response-content-language",
  "response-expires",
  "response-cache-control",
  "response-content-disposition",
  "response-content-encoding",
]);
