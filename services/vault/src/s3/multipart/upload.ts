// CreateMultipartUpload, CompleteMultipartUpload and AbortMultipartUpload
import { identifyUser } from "../../access/authorizer.ts";
import type { ChecksumAlgorithm, ObjectChecksum } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import type { CompleteUploadRequest, CreateUploadRequest, Initiator } from "../../model/upload.ts";
import { answerEmpty, answerXml, type Header } from "../answer.ts";
import { checkKeyUse } from "../authorization.ts";
import { getActor, type OperationContext, type OperationHandler } from "../context.ts";
import { formatLocation, getVersionHeaders } from "../object/address.ts";
import { readAttributes } from "../object/attributes-in.ts";
import { readEtags, readWriteConditions } from "../object/conditions.ts";
import { getEncryptionHeaders, getNewEncryptionHeaders } from "../object/encryption.ts";
import { findExpirationHeaders, getAbortHeaders } from "../object/object-headers.ts";
import { receiveDocument } from "../payload.ts";
import {
  CHECKSUM_ALGORITHMS,
  readChecksumAlgorithm,
  readCompositeClaim,
} from "../wire/checksum.ts";
import { readVectorField } from "../vector-value.ts";
import { malformedXml, parseXml, tag, xmlDocument, type XmlElement } from "../wire/xml.ts";

const PARTS_MAX = 10_000;
const BODY_BYTES_MAX = 4 * 1024 ** 2;
const ALGORITHMS = Object.keys(CHECKSUM_ALGORITHMS) as ChecksumAlgorithm[];

/** The upload of a request. */
export function getUploadAddress(context: OperationContext) {
  const uploadId = context.query.get("uploadId") ?? "";
  return { bucket: context.bucketName, key: context.key, uploadId };
}

export const createMultipartUpload: OperationHandler = async (context) => {
  const request: CreateUploadRequest = {
    ...(await readAttributes(context)),
    bucket: context.bucketName,
    key: context.key,
    initiator: describeInitiator(context),
  };
  // Its parts are put together at the end.
  if (request.encryption?.type === "SSE-KMS")
    checkKeyUse(context, "kms:Decrypt")(request.encryption.keyId);
  const checksum = readUploadChecksum(context);
  if (checksum !== undefined) request.checksum = checksum;
  const upload = await context.api.store.uploads.create(request);
  const headers: Header[] = [
    ...getNewEncryptionHeaders(upload.encryption),
    ...getAbortHeaders(context, upload),
  ];
  if (upload.checksum !== undefined && upload.checksum.isDefault !== true) {
    headers.push(
      ["x-amz-checksum-algorithm", upload.checksum.algorithm],
      ["x-amz-checksum-type", upload.checksum.type],
    );
  }
  const inner =
    tag("Bucket", upload.bucket) + tag("Key", upload.key) + tag("UploadId", upload.uploadId);
  return answerXml(xmlDocument("InitiateMultipartUploadResult", inner), headers);
};

function describeInitiator({ api, caller }: OperationContext): Initiator {
  const user = identifyUser(caller);
  return { ...api.authorizer.describe(caller), ...(user === undefined ? {} : { user }) };
}

// CRC-64 covers the whole object, SHA the parts; the other CRCs support both and default to the parts.
function readUploadChecksum(context: OperationContext): CreateUploadRequest["checksum"] {
  const name = context.fields.get("x-amz-checksum-algorithm");
  const type = context.fields.get("x-amz-checksum-type");
  if (name === undefined) {
    if (type !== undefined) {
      throw new S3Error(
        "InvalidRequest",
        "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
      );
    }
    return { algorithm: "CRC64NVME", type: "FULL_OBJECT", isDefault: true };
  }
  const algorithm = readChecksumAlgorithm(name);
  const isSha = algorithm === "SHA1" || algorithm === "SHA256";
  const usual = algorithm === "CRC64NVME" ? "FULL_OBJECT" : "COMPOSITE";
  const chosen = type === undefined ? usual : readChecksumType(type);
  if (
    (isSha && chosen === "FULL_OBJECT") ||
    (algorithm === "CRC64NVME" && chosen === "COMPOSITE")
  ) {
    throw new S3Error(
      "InvalidRequest",
      `The ${chosen} checksum type cannot be used with the ${algorithm.toLowerCase()} checksum algorithm.`,
    );
  }
  return { algorithm, type: chosen };
}

function readChecksumType(text: string): ObjectChecksum["type"] {
  const type = text.toUpperCase();
  if (type === "FULL_OBJECT" || type === "COMPOSITE") return type;
  throw new S3Error("InvalidRequest", "Value for x-amz-checksum-type header is invalid.");
}

export const completeMultipartUpload: OperationHandler = async (context) => {
  const { api, fields } = context;
  // Checksum headers of this request belong to the object, not to the document.
  const body = await receiveDocument(context, {
    bytesMax: BODY_BYTES_MAX,
    ignoresChecksum: true,
  });
  // Clients that list no part send no document: it counts as an empty list.
  if (body.length === 0) throw malformedXml("it has no parts");
  const root = parseXml(body, "CompleteMultipartUpload", { elementsMax: 8 * PARTS_MAX });
  const parts = root.list("Part").map(readPart);
  if (parts.length === 0 || parts.length > PARTS_MAX)
    throw malformedXml("it has no parts, or too many");
  const request: CompleteUploadRequest = {
    ...getUploadAddress(context),
    parts,
    actor: getActor(context),
  };
  const checksum = readCompositeClaim(fields);
  if (checksum !== undefined) request.checksum = checksum;
  const size = fields.get("x-amz-mp-object-size");
  if (size !== undefined) {
    if (!/^\d{1,15}$/.test(size))
      throw new S3Error("InvalidRequest", "Value for x-amz-mp-object-size header is invalid.");
    request.sizeBytes = Number(size);
  }
  const type = fields.get("x-amz-checksum-type");
  if (type !== undefined) request.checksumType = readChecksumType(type);
  const conditions = readWriteConditions(fields);
  if (conditions !== undefined) request.conditions = conditions;
  const vector = fields.getFilled("x-amz-vector");
  if (vector !== undefined) {
    request.vector = Buffer.from(readVectorField(vector)).toString("base64");
  }
  const checkKey = checkKeyUse(context, "kms:Decrypt");
  const result = await api.store.uploads.complete(request, checkKey);
  const { key, bucketName } = context;
  const inner =
    tag("Location", formatLocation(context)) +
    tag("Bucket", bucketName) +
    tag("Key", key) +
    tag("ETag", `"${result.etag}"`) +
    (result.checksum === undefined
      ? ""
      : tag(CHECKSUM_ALGORITHMS[result.checksum.algorithm].element, result.checksum.value) +
        tag("ChecksumType", result.checksum.type));
  return answerXml(xmlDocument("CompleteMultipartUploadResult", inner), [
    ...getVersionHeaders(context, result.versionId),
    ...getEncryptionHeaders(result.encryption),
    ...(await findExpirationHeaders(context, key, result.versionId)),
  ]);
};

function readPart(item: XmlElement): CompleteUploadRequest["parts"][number] {
  const number = item.getText("PartNumber").trim();
  if (!/^\d{1,5}$/.test(number)) throw malformedXml("a PartNumber is not a number");
  const etag = readEtags(item.getText("ETag"))[0] ?? "";
  const part = { partNumber: Number(number), etag };
  for (const algorithm of ALGORITHMS) {
    const checksum = item.findText(CHECKSUM_ALGORITHMS[algorithm].element);
    if (checksum !== undefined) return { ...part, checksum };
  }
  return part;
}

export const abortMultipartUpload: OperationHandler = async (context) => {
  await context.api.store.uploads.abort(getUploadAddress(context));
  return answerEmpty();
};
