// ListParts and ListMultipartUploads
import type { Owner } from "../../model/bucket.ts";
import type { ListUploadsRequest } from "../../model/upload.ts";
import { answerXml } from "../answer.ts";
import { getOwner, type OperationHandler } from "../context.ts";
import { createKeyEncoder, formatPrefixes, readEncodingType, toPosition } from "../listing.ts";
import { readInteger } from "../object/conditions.ts";
import { getAbortHeaders } from "../object/object-headers.ts";
import { CHECKSUM_ALGORITHMS } from "../wire/checksum.ts";
import { tag, wrap, xmlDocument } from "../wire/xml.ts";
import { getUploadAddress } from "./upload.ts";

const INTEGER_MAX = 2_147_483_647;
const PAGE_MAX = 1_000;

export const listParts: OperationHandler = async (context) => {
  const { api, query } = context;
  const maxParts = readInteger(query.get("max-parts"), "max-parts", 0, INTEGER_MAX) ?? PAGE_MAX;
  const marker =
    readInteger(query.get("part-number-marker"), "part-number-marker", 0, INTEGER_MAX) ?? 0;
  const page = await api.store.uploads.listParts(getUploadAddress(context), {
    maxParts: Math.min(PAGE_MAX, maxParts),
    afterPartNumber: marker,
  });
  const { upload } = page;
  const encode = createKeyEncoder(readEncodingType(query));
  const parts = page.parts.map((part) =>
    wrap(
      "Part",
      tag("PartNumber", part.partNumber) +
        tag("LastModified", new Date(part.modifiedMs).toISOString()) +
        tag("ETag", `"${part.etag}"`) +
        tag("Size", part.sizeBytes) +
        (part.checksum === undefined
          ? ""
          : tag(CHECKSUM_ALGORITHMS[part.checksum.algorithm].element, part.checksum.value)),
    ),
  );
  const inner =
    tag("Bucket", upload.bucket) +
    tag("Key", encode(upload.key)) +
    tag("UploadId", upload.uploadId) +
    formatOwner("Initiator", upload.initiator ?? getOwner(api)) +
    formatOwner("Owner", upload.owner ?? getOwner(api)) +
    tag("StorageClass", upload.storageClass) +
    tag("PartNumberMarker", marker) +
    tag("NextPartNumberMarker", page.nextPartNumber ?? page.parts.at(-1)?.partNumber ?? 0) +
    tag("MaxParts", Math.min(PAGE_MAX, maxParts)) +
    tag("IsTruncated", page.isTruncated) +
    tag("ChecksumAlgorithm", upload.checksum?.algorithm) +
    tag("ChecksumType", upload.checksum?.type) +
    parts.join("");
  return answerXml(xmlDocument("ListPartsResult", inner), getAbortHeaders(context, upload));
};

export const listMultipartUploads: OperationHandler = async (context) => {
  const { api, query } = context;
  const prefix = query.get("prefix") ?? "";
  const delimiter = query.get("delimiter") ?? "";
  const keyMarker = query.get("key-marker") ?? "";
  const idMarker = query.get("upload-id-marker") ?? "";
  const maxUploads = Math.min(
    PAGE_MAX,
    readInteger(query.get("max-uploads"), "max-uploads", 0, INTEGER_MAX) ?? PAGE_MAX,
  );
  const request: ListUploadsRequest = { bucket: context.bucketName, maxUploads };
  if (prefix !== "") request.prefix = prefix;
  if (delimiter !== "") request.delimiter = delimiter;
  if (keyMarker !== "") {
    request.after = {
      ...toPosition(keyMarker, prefix, delimiter),
      ...(idMarker === "" ? {} : { uploadId: idMarker }),
    };
  }
  const page = await api.store.uploads.list(request);
  const encodingType = readEncodingType(query);
  const encode = createKeyEncoder(encodingType);
  const uploads = page.uploads.map((upload) =>
    wrap(
      "Upload",
      tag("Key", encode(upload.key)) +
        tag("UploadId", upload.uploadId) +
        formatOwner("Initiator", upload.initiator ?? getOwner(api)) +
        formatOwner("Owner", upload.owner ?? getOwner(api)) +
        tag("StorageClass", upload.storageClass) +
        tag("Initiated", new Date(upload.createdMs).toISOString()) +
        tag("ChecksumAlgorithm", upload.checksum?.algorithm) +
        tag("ChecksumType", upload.checksum?.type),
    ),
  );
  const inner =
    tag("Bucket", context.bucketName) +
    tag("KeyMarker", encode(keyMarker)) +
    tag("UploadIdMarker", idMarker) +
    (page.isTruncated
      ? tag("NextKeyMarker", encode(page.next?.value ?? "")) +
        tag("NextUploadIdMarker", page.next?.uploadId ?? "")
      : "") +
    tag("Prefix", encode(prefix)) +
    (delimiter === "" ? "" : tag("Delimiter", encode(delimiter))) +
    tag("EncodingType", encodingType) +
    tag("MaxUploads", maxUploads) +
    tag("IsTruncated", page.isTruncated) +
    uploads.join("") +
    formatPrefixes(page.commonPrefixes, encode);
  return answerXml(xmlDocument("ListMultipartUploadsResult", inner));
};

function formatOwner(name: "Owner" | "Initiator", owner: Owner): string {
  return wrap(name, tag("ID", owner.id) + tag("DisplayName", owner.displayName));
}
