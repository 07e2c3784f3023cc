// The headers of an object in answers.
import { findExpiration, findUploadAbort } from "../../model/lifecycle-rule.ts";
import { findReplicationStatus } from "../../model/replication.ts";
import type { ContentHeaders, ObjectChecksum, ObjectInfo } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import { StoreError } from "../../model/store-error.ts";
import type { UploadInfo } from "../../model/upload.ts";
import type { Header } from "../answer.ts";
import { getBucket, type OperationContext } from "../context.ts";
import { CHECKSUM_ALGORITHMS } from "../wire/checksum.ts";
import { formatHttpDate } from "../wire/timestamp.ts";
import { getVersionHeaders } from "./address.ts";
import { getEncryptionHeaders } from "./encryption.ts";
import { getRestoreHeaders } from "./restore-object.ts";

/** The characters of a header value (RFC 9110 section 5.5). */
const FIELD_VALUE = /^[\t\x20-\x7e\xa0-\xff]*$/;

type ContentField = readonly [name: string, property: keyof ContentHeaders, parameter: string];

const FRESHNESS_FIELDS: readonly ContentField[] = [
  ["Expires", "expires", "response-expires"],
  ["Cache-Control", "cacheControl", "response-cache-control"],
];
/** The headers that are stored with an object, and the parameters that override them in a signed GET. */
const CONTENT_FIELDS: readonly ContentField[] = [
  ["Content-Type", "contentType", "response-content-type"],
  ["Content-Language", "contentLanguage", "response-content-language"],
  ["Content-Disposition", "contentDisposition", "response-content-disposition"],
  ["Content-Encoding", "contentEncoding", "response-content-encoding"],
  ...FRESHNESS_FIELDS,
];
/** The default if none is stored. */
const DEFAULTS: ContentHeaders = { contentType: "binary/octet-stream" };

/** Caching headers. */
export function getFreshnessHeaders(
  context: OperationContext,
  kept: Pick<ContentHeaders, "cacheControl" | "expires">,
): Header[] {
  return chooseHeaders(context, kept, FRESHNESS_FIELDS);
}

// As stored, or overridden by a signed request.
function chooseHeaders(
  context: OperationContext,
  kept: ContentHeaders,
  fields: readonly ContentField[],
): Header[] {
  const headers: Header[] = [];
  for (const [name, property, parameter] of fields) {
    const shown = readOverride(context, parameter) ?? kept[property] ?? DEFAULTS[property];
    if (shown !== undefined) headers.push([name, shown]);
  }
  return headers;
}

/** All headers of GET and HEAD except those of ranges and checksums. */
export function getObjectHeaders(context: OperationContext, object: ObjectInfo): Header[] {
  const headers: Header[] = [
    ["Last-Modified", formatHttpDate(object.modifiedMs)],
    ["ETag", `"${object.etag}"`],
    ["Accept-Ranges", "bytes"],
    ...getVersionHeaders(context, object.versionId),
    ...chooseHeaders(context, object.headers, CONTENT_FIELDS),
  ];
  for (const [name, value] of Object.entries(object.metadata)) {
    headers.push([`x-amz-meta-${name}`, value]);
  }
  const tagCount = Object.keys(object.tags).length;
  if (tagCount > 0) headers.push(["x-amz-tagging-count", String(tagCount)]);
  if (object.storageClass !== "STANDARD")
    headers.push(["x-amz-storage-class", object.storageClass]);
  if (object.restore !== undefined) headers.push(...getRestoreHeaders(object));
  if (object.websiteRedirect !== undefined) {
    headers.push(["x-amz-website-redirect-location", object.websiteRedirect]);
  }
  if (object.retention !== undefined) {
    headers.push(
      ["x-amz-object-lock-mode", object.retention.mode],
      ["x-amz-object-lock-retain-until-date", new Date(object.retention.untilMs).toISOString()],
    );
  }
  if (object.legalHold !== undefined) {
    headers.push(["x-amz-object-lock-legal-hold", object.legalHold ? "ON" : "OFF"]);
  }
  headers.push(...getEncryptionHeaders(object.encryption));
  const replication = findReplicationStatus(object);
  if (replication !== undefined) headers.push(["x-amz-replication-status", replication]);
  if (object.isLatest) headers.push(...getExpirationHeaders(context, object));
  return headers;
}

/** The headers of an object that follow it into a copy, in another store. */
export function listContentFields(object: ObjectInfo): [name: string, value: string][] {
  const fields: [string, string][] = [];
  for (const [name, property] of CONTENT_FIELDS) {
    const value = object.headers[property];
    if (value !== undefined) fields.push([name.toLowerCase(), value]);
  }
  for (const [name, value] of Object.entries(object.metadata))
    fields.push([`x-amz-meta-${name}`, value]);
  if (object.websiteRedirect !== undefined)
    fields.push(["x-amz-website-redirect-location", object.websiteRedirect]);
  return fields;
}

function readOverride({ query }: OperationContext, parameter: string): string | undefined {
  const text = query.get(parameter);
  if (text === undefined || FIELD_VALUE.test(text)) return text;
  throw new S3Error("InvalidArgument", {
    message: "Header value cannot be represented using ISO-8859-1.",
    elements: [["ArgumentName", parameter]],
  });
}

/** True if a request has overrides, which anonymous requests may not. */
export function hasOverrides(context: OperationContext): boolean {
  return CONTENT_FIELDS.some(([, , parameter]) => context.query.has(parameter));
}

/** `x-amz-expiration`, if a lifecycle rule will remove the object. */
export function getExpirationHeaders(
  context: OperationContext,
  object: Pick<ObjectInfo, "key" | "sizeBytes" | "tags" | "modifiedMs">,
): Header[] {
  const { lifecycle } = getBucket(context).settings;
  if (lifecycle === undefined) return [];
  const found = findExpiration(lifecycle.rules, object, object.modifiedMs);
  if (found === undefined) return [];
  const date = new Date(found.atMs).toUTCString();
  return [
    ["x-amz-expiration", `expiry-date="${date}", rule-id="${encodeURIComponent(found.ruleId)}"`],
  ];
}

/**
 * As `getExpirationHeaders`, for an object of which only key and version are known; it is looked up only if there are
 * rules.
 */
export async function findExpirationHeaders(
  context: OperationContext,
  key: string,
  versionId: string,
): Promise<Header[]> {
  if (getBucket(context).settings.lifecycle === undefined) return [];
  try {
    const address = { bucket: context.bucketName, key, versionId };
    return getExpirationHeaders(context, await context.api.store.objects.describe(address));
  } catch (error) {
    if (error instanceof StoreError) return [];
    throw error;
  }
}

/** `x-amz-abort-date` and the id of the rule, if a lifecycle rule will end an upload that is not completed by then. */
export function getAbortHeaders(
  context: OperationContext,
  upload: Pick<UploadInfo, "key" | "createdMs">,
): Header[] {
  const { lifecycle } = getBucket(context).settings;
  const found =
    lifecycle === undefined
      ? undefined
      : findUploadAbort(lifecycle.rules, upload.key, upload.createdMs);
  if (found === undefined) return [];
  return [
    ["x-amz-abort-date", new Date(found.atMs).toUTCString()],
    ["x-amz-abort-rule-id", encodeURIComponent(found.ruleId)],
  ];
}

/** The header of a checksum, with its type. */
export function getChecksumHeaders(checksum: ObjectChecksum | undefined): Header[] {
  if (checksum === undefined) return [];
  return [
    [CHECKSUM_ALGORITHMS[checksum.algorithm].field, checksum.value],
    ["x-amz-checksum-type", checksum.type],
  ];
}
