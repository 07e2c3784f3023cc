// What an answer tells of an object.
import type { ObjectChecksum, ObjectInfo } from "../../store.ts";
import { checksumAlgorithms } from "../../wire/checksum.ts";
import { S3Error } from "../../wire/error.ts";
import type { Header } from "../answer.ts";
import { getVersionHeaders } from "./address.ts";
import { getEncryptionHeaders } from "./encryption.ts";
import { getBucket } from "../context.ts";
import type { OperationContext } from "../context.ts";
import { findExpiration } from "../../store.ts";

/** What a field's value may be (RFC 9110 section 5.5). */
const FIELD_VALUE = /^[\t\x20-\x7e\xa0-\xff]*$/;

/** The fields that are kept with an object, and the parameters by which a signed GET may ask for others. */
const CONTENT_FIELDS = [
  ["Content-Type", "contentType", "response-content-type"],
  ["Content-Language", "contentLanguage", "response-content-language"],
  ["Expires", "expires", "response-expires"],
  ["Cache-Control", "cacheControl", "response-cache-control"],
  ["Content-Disposition", "contentDisposition", "response-content-disposition"],
  ["Content-Encoding", "contentEncoding", "response-content-encoding"],
] as const;
const TYPE_DEFAULT = "binary/octet-stream";

/** All fields of GET and HEAD but those of ranges and checksums. */
export function getObjectHeaders(context: OperationContext, object: ObjectInfo): Header[] {
  const { headers: kept } = object;
  const headers: Header[] = [
    ["Last-Modified", new Date(object.modifiedMs).toUTCString()],
    ["ETag", `"${object.etag}"`],
    ["Accept-Ranges", "bytes"],
    ...getVersionHeaders(context, object.versionId),
  ];
  for (const [name, property, parameter] of CONTENT_FIELDS) {
    const shown = readOverride(context, parameter) ?? kept[property];
    if (shown !== undefined) headers.push([name, shown]);
    else if (property === "contentType") headers.push([name, TYPE_DEFAULT]);
  }
  for (const [name, value] of Object.entries(object.metadata)) {
    headers.push([`x-amz-meta-${name}`, value]);
  }
  const tagCount = Object.keys(object.tags).length;
  if (tagCount > 0) headers.push(["x-amz-tagging-count", String(tagCount)]);
  if (object.storageClass !== "STANDARD")
    headers.push(["x-amz-storage-class", object.storageClass]);
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
  if (object.isLatest) headers.push(...getExpirationHeaders(context, object));
  return headers;
}

function readOverride({ query }: OperationContext, parameter: string): string | undefined {
  const text = query.get(parameter);
  if (text === undefined || FIELD_VALUE.test(text)) return text;
  throw new S3Error("InvalidArgument", {
    message: "Header value cannot be represented using ISO-8859-1.",
    elements: [["ArgumentName", parameter]],
  });
}

/** Whether a request asks for overrides; anonymous ones may not. */
export function hasOverrides(context: OperationContext): boolean {
  return CONTENT_FIELDS.some(([, , parameter]) => context.query.has(parameter));
}

/** `x-amz-expiration`, where a lifecycle rule will remove the object. */
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

/** A checksum as a field, with its type. */
export function getChecksumHeaders(checksum: ObjectChecksum | undefined): Header[] {
  if (checksum === undefined) return [];
  return [
    [checksumAlgorithms[checksum.algorithm].field, checksum.value],
    ["x-amz-checksum-type", checksum.type],
  ];
}
