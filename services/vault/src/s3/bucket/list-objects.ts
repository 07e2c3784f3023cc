// ListObjects, ListObjectsV2 and ListObjectVersions
import type { ListedObject, ListPosition, ListRequest, ListResult } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import type { ListVersionsRequest } from "../../model/version.ts";
import { answerXml } from "../answer.ts";
import {
  getOwner,
  type OperationContext,
  type OperationHandler,
  requireVersionId,
} from "../context.ts";
import {
  createKeyEncoder,
  formatPrefixes,
  formatToken,
  parseToken,
  readEncodingType,
  toPosition,
} from "../listing.ts";
import { readInteger } from "../object/conditions.ts";
import { TimestampFormatter } from "../wire/timestamp.ts";
import { escapeXml, tag, wrap, xmlDocument } from "../wire/xml.ts";

const INTEGER_MAX = 2_147_483_647;
const PAGE_MAX = 1_000;

interface Listing {
  prefix: string;
  delimiter: string;
  maxKeys: number;
  encodingType: "url" | undefined;
  encode: (key: string) => string;
}

function readListing({ query }: OperationContext): Listing {
  const encodingType = readEncodingType(query);
  return {
    prefix: query.get("prefix") ?? "",
    delimiter: query.get("delimiter") ?? "",
    maxKeys: Math.min(
      PAGE_MAX,
      readInteger(query.get("max-keys") || undefined, "max-keys", 0, INTEGER_MAX) ?? PAGE_MAX,
    ),
    encodingType,
    encode: createKeyEncoder(encodingType),
  };
}

function toListRequest(
  context: OperationContext,
  listing: Listing,
  after: ListPosition | undefined,
): ListRequest {
  const { prefix, delimiter, maxKeys } = listing;
  const request: ListRequest = { bucket: context.bucketName, maxKeys };
  if (prefix !== "") request.prefix = prefix;
  if (delimiter !== "") request.delimiter = delimiter;
  if (after !== undefined) request.after = after;
  return request;
}

/**
 * ListObjects, the first version. Its pages include a token that continues in the second version: a request with a token
 * and without a version uses that.
 */
export const listObjects: OperationHandler = async (context) => {
  if (context.query.has("continuation-token")) return listObjectsV2(context);
  const listing = readListing(context);
  const { prefix, delimiter, maxKeys, encode } = listing;
  const marker = context.query.get("marker") ?? "";
  const after = marker === "" ? undefined : toPosition(marker, prefix, delimiter);
  const page = await context.api.store.objects.list(toListRequest(context, listing, after));
  const inner =
    tag("Name", context.bucketName) +
    tag("Prefix", encode(prefix)) +
    tag("Marker", encode(marker)) +
    // Without a delimiter the last key is the marker, so S3 omits it.
    (page.isTruncated && delimiter !== ""
      ? tag("NextMarker", encode(page.next?.value ?? ""))
      : "") +
    formatNextToken(page) +
    tag("MaxKeys", maxKeys) +
    (delimiter === "" ? "" : tag("Delimiter", encode(delimiter))) +
    tag("EncodingType", listing.encodingType) +
    tag("IsTruncated", page.isTruncated) +
    formatObjects(context, page.objects, encode, true) +
    formatPrefixes(page.commonPrefixes, encode);
  return answerXml(xmlDocument("ListBucketResult", inner));
};

/** ListObjectsV2 */
export const listObjectsV2: OperationHandler = async (context) => {
  const { query } = context;
  if ((query.get("list-type") ?? "2") !== "2") {
    throw new S3Error("InvalidArgument", "Invalid List Type specified in Request");
  }
  const listing = readListing(context);
  const { prefix, delimiter, maxKeys, encode } = listing;
  const token = query.get("continuation-token");
  const startAfter = query.get("start-after") ?? "";
  if (token === "")
    throw new S3Error("InvalidArgument", "The continuation token provided is incorrect");
  let after: ListPosition | undefined;
  if (token !== undefined) after = parseToken(token);
  else if (startAfter !== "") after = toPosition(startAfter, prefix, delimiter);
  const page = await context.api.store.objects.list(toListRequest(context, listing, after));
  const inner =
    tag("Name", context.bucketName) +
    tag("Prefix", encode(prefix)) +
    (startAfter === "" ? "" : tag("StartAfter", encode(startAfter))) +
    tag("ContinuationToken", token) +
    formatNextToken(page) +
    tag("KeyCount", page.objects.length + page.commonPrefixes.length) +
    tag("MaxKeys", maxKeys) +
    (delimiter === "" ? "" : tag("Delimiter", encode(delimiter))) +
    tag("EncodingType", listing.encodingType) +
    tag("IsTruncated", page.isTruncated) +
    formatObjects(context, page.objects, encode, query.get("fetch-owner") === "true") +
    formatPrefixes(page.commonPrefixes, encode);
  return answerXml(xmlDocument("ListBucketResult", inner));
};

function formatNextToken({ isTruncated, next }: ListResult): string {
  return isTruncated && next !== undefined ? tag("NextContinuationToken", formatToken(next)) : "";
}

export const listObjectVersions: OperationHandler = async (context) => {
  const { query, api } = context;
  const listing = readListing(context);
  const { prefix, delimiter, maxKeys, encode } = listing;
  const keyMarker = query.get("key-marker") ?? "";
  const idMarker = query.get("version-id-marker");
  if (idMarker !== undefined && keyMarker === "") {
    throw new S3Error(
      "InvalidArgument",
      "A version-id marker cannot be specified without a key marker.",
    );
  }
  if (idMarker !== undefined) requireVersionId(idMarker, "version-id-marker");
  const request: ListVersionsRequest = { bucket: context.bucketName, maxKeys };
  if (prefix !== "") request.prefix = prefix;
  if (delimiter !== "") request.delimiter = delimiter;
  if (keyMarker !== "") {
    request.after = {
      ...toPosition(keyMarker, prefix, delimiter),
      ...(idMarker === undefined ? {} : { versionId: idMarker }),
    };
  }
  const page = await api.store.objects.listVersions(request);
  const owner = formatOwner(context);
  const timestamps = new TimestampFormatter();
  let rows = "";
  for (const version of page.versions) {
    const head =
      tag("Key", encode(version.key)) +
      tag("VersionId", version.versionId) +
      tag("IsLatest", version.isLatest) +
      tag("LastModified", timestamps.format(version.modifiedMs));
    rows += version.isDeleteMarker
      ? wrap("DeleteMarker", head + owner)
      : wrap("Version", head + formatContent(version) + owner);
  }
  const inner =
    tag("Name", context.bucketName) +
    tag("Prefix", encode(prefix)) +
    tag("KeyMarker", encode(keyMarker)) +
    tag("VersionIdMarker", idMarker ?? "") +
    (page.isTruncated
      ? tag("NextKeyMarker", encode(page.next?.value ?? "")) +
        tag("NextVersionIdMarker", page.next?.versionId)
      : "") +
    tag("MaxKeys", maxKeys) +
    (delimiter === "" ? "" : tag("Delimiter", encode(delimiter))) +
    tag("EncodingType", listing.encodingType) +
    tag("IsTruncated", page.isTruncated) +
    rows +
    formatPrefixes(page.commonPrefixes, encode);
  return answerXml(xmlDocument("ListVersionsResult", inner));
};

function formatObjects(
  context: OperationContext,
  objects: readonly ListedObject[],
  encode: (key: string) => string,
  withOwner: boolean,
): string {
  const owner = withOwner ? formatOwner(context) : "";
  const timestamps = new TimestampFormatter();
  let out = "";
  for (const object of objects) {
    out += `<Contents><Key>${escapeXml(encode(object.key))}</Key><LastModified>${timestamps.format(object.modifiedMs)}</LastModified>${formatContent(object)}${owner}</Contents>`;
  }
  return out;
}

function formatContent(object: ListedObject): string {
  const checksum =
    object.checksum === undefined
      ? ""
      : `<ChecksumAlgorithm>${object.checksum.algorithm}</ChecksumAlgorithm><ChecksumType>${object.checksum.type}</ChecksumType>`;
  return `<ETag>&quot;${object.etag}&quot;</ETag>${checksum}<Size>${object.sizeBytes}</Size><StorageClass>${object.storageClass}</StorageClass>`;
}

function formatOwner(context: OperationContext): string {
  const owner = getOwner(context.api);
  return wrap("Owner", tag("ID", owner.id) + tag("DisplayName", owner.displayName));
}
