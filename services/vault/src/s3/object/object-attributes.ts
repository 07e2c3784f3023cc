// GetObjectAttributes
import type { ObjectChecksum } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import { answerXml } from "../answer.ts";
import { hideMissing } from "../authorization.ts";
import type { OperationContext, OperationHandler } from "../context.ts";
import { CHECKSUM_ALGORITHMS } from "../wire/checksum.ts";
import { formatHttpDate } from "../wire/timestamp.ts";
import { tag, wrap, xmlDocument } from "../wire/xml.ts";
import { getAddress, getVersionHeaders } from "./address.ts";
import { readInteger } from "./conditions.ts";
import { getEncryptionHeaders, readCustomerKey } from "./encryption.ts";

const NAMES: ReadonlySet<string> = new Set([
  "ETag",
  "Checksum",
  "ObjectParts",
  "StorageClass",
  "ObjectSize",
]);

export const getObjectAttributes: OperationHandler = async (context) => {
  const { api, fields } = context;
  const asked = (fields.get("x-amz-object-attributes") ?? "").split(",").map((name) => name.trim());
  if (asked.length === 0 || !asked.every((name) => NAMES.has(name))) {
    throw new S3Error("InvalidArgument", "Invalid attribute name specified.");
  }
  const customerKey = readCustomerKey(fields);
  const request = {
    ...getAddress(context),
    ...(customerKey === undefined ? {} : { customerKey }),
  };
  const { object } = await api.store.objects.head(request).catch(async (error: unknown) => {
    throw await hideMissing(context, error);
  });
  const wants = new Set(asked);
  let inner = "";
  if (wants.has("ETag")) inner += tag("ETag", object.etag);
  if (wants.has("Checksum") && object.checksum !== undefined) {
    inner += wrap(
      "Checksum",
      formatChecksum(withoutCount(object.checksum)) + tag("ChecksumType", object.checksum.type),
    );
  }
  if (wants.has("ObjectParts") && object.partsCount !== undefined)
    inner += await formatParts(context);
  if (wants.has("StorageClass")) inner += tag("StorageClass", object.storageClass);
  if (wants.has("ObjectSize")) inner += tag("ObjectSize", object.sizeBytes);
  return answerXml(xmlDocument("GetObjectAttributesResponse", inner), [
    ["Last-Modified", formatHttpDate(object.modifiedMs)],
    ...getVersionHeaders(context, object.versionId),
    ...getEncryptionHeaders(object.encryption),
  ]);
};

async function formatParts(context: OperationContext): Promise<string> {
  const { fields } = context;
  const maxParts =
    readInteger(fields.get("x-amz-max-parts"), "x-amz-max-parts", 0, 2_147_483_647) ?? 1_000;
  const marker =
    readInteger(fields.get("x-amz-part-number-marker"), "x-amz-part-number-marker", 0, 10_000) ?? 0;
  const page = await context.api.store.objects.listParts(getAddress(context), {
    maxParts: Math.min(1_000, maxParts),
    afterPartNumber: marker,
  });
  const parts = page.parts
    // As in S3, parts are listed only if they have checksums.
    .filter((part) => part.checksum !== undefined)
    .map((part) =>
      wrap(
        "Part",
        tag("PartNumber", part.partNumber) +
          tag("Size", part.sizeBytes) +
          formatChecksum(part.checksum!),
      ),
    );
  return wrap(
    "ObjectParts",
    tag("IsTruncated", page.isTruncated) +
      tag("MaxParts", maxParts) +
      tag("NextPartNumberMarker", page.nextPartNumber ?? page.parts.at(-1)?.partNumber ?? 0) +
      tag("PartNumberMarker", marker) +
      tag("PartsCount", page.partsCount) +
      parts.join(""),
  );
}

// The number of parts of a composite checksum is in PartsCount instead.
function withoutCount(checksum: ObjectChecksum): ObjectChecksum {
  return { ...checksum, value: checksum.value.replace(/-\d+$/, "") };
}

function formatChecksum(checksum: ObjectChecksum): string {
  return tag(CHECKSUM_ALGORITHMS[checksum.algorithm].element, checksum.value);
}
