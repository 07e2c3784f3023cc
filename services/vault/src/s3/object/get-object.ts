// GetObject and HeadObject
import type { GetRequest, HeadResult } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import { StoreError } from "../../model/store-error.ts";
import { type Header, type S3Answer, toS3Error } from "../answer.ts";
import { checkKeyUse, hideMissing } from "../authorization.ts";
import { getBucket, type OperationContext, type OperationHandler } from "../context.ts";
import { getAddress } from "./address.ts";
import { readConditions, readEtags, readInteger, readRange } from "./conditions.ts";
import { readCustomerKey, refuseWriteEncryption } from "./encryption.ts";
import {
  getChecksumHeaders,
  getFreshnessHeaders,
  getObjectHeaders,
  hasOverrides,
} from "./object-headers.ts";

export const getObject: OperationHandler = async (context) => {
  try {
    const request = await readGetRequest(context);
    const window = context.request.openWindow();
    if (window !== undefined) request.window = window;
    request.checkKey = checkKeyUse(context, "kms:Decrypt");
    const found = await context.api.store.objects.get(request);
    const { body, contentLength } = found;
    return { ...describe(context, found, request), object: body, contentLength };
  } catch (error) {
    throw await explain(context, error);
  }
};

export const headObject: OperationHandler = async (context) => {
  try {
    const request = await readGetRequest(context);
    const found = await context.api.store.objects.head(request);
    const answer = describe(context, found, request);
    const headers = [...(answer.headers ?? []), ...getVectorHeaders(context)];
    return { ...answer, headers, contentLength: found.contentLength };
  } catch (error) {
    throw await explain(context, error);
  }
};

// Most buckets have no vectors, and no lookup.
function getVectorHeaders(context: OperationContext): Header[] {
  if (getBucket(context).settings.vectorIndex === undefined) return [];
  const status = context.api.store.objects.readVectorStatus(getAddress(context));
  return status === undefined ? [] : [["x-amz-vector-status", status]];
}

async function readGetRequest(context: OperationContext): Promise<GetRequest> {
  const { fields, query, caller } = context;
  if (caller.kind === "anonymous" && hasOverrides(context)) {
    throw new S3Error(
      "InvalidRequest",
      "Request specific response headers cannot be used for anonymous GET requests.",
    );
  }
  refuseWriteEncryption(fields);
  const request: GetRequest = getAddress(context);
  const partNumber = readInteger(query.get("partNumber"), "partNumber", 1, 10_000);
  const range = readRange(fields.get("range"));
  if (partNumber !== undefined && fields.has("range")) {
    throw new S3Error(
      "InvalidRequest",
      "Cannot specify both Range header and partNumber query parameter",
    );
  }
  if (partNumber !== undefined) request.partNumber = partNumber;
  const conditions = readConditions(fields);
  if (conditions !== undefined) request.conditions = conditions;
  const customerKey = readCustomerKey(fields);
  if (customerKey !== undefined) request.customerKey = customerKey;
  if (range !== undefined && (await isRangeWanted(context, request))) request.range = range;
  return request;
}

// If-Range: the range applies to this version of the object, otherwise the whole is returned (RFC 9110 section 13.1.5).
async function isRangeWanted(context: OperationContext, request: GetRequest): Promise<boolean> {
  const ifRange = context.fields.get("if-range");
  if (ifRange === undefined) return true;
  const { object } = await context.api.store.objects.head({ ...request });
  if (ifRange.startsWith("W/")) return false;
  if (ifRange.startsWith('"')) return readEtags(ifRange).includes(object.etag);
  return Date.parse(ifRange) === Math.floor(object.modifiedMs / 1000) * 1000;
}

function describe(context: OperationContext, found: HeadResult, request: GetRequest): S3Answer {
  const { object, range } = found;
  const headers: Header[] = getObjectHeaders(context, object);
  if (range !== undefined) {
    headers.push(["Content-Range", `bytes ${range.start}-${range.end}/${object.sizeBytes}`]);
  }
  if (context.fields.get("x-amz-checksum-mode")?.toUpperCase() === "ENABLED") {
    headers.push(...getChecksumHeaders(object.checksum));
  }
  if (request.partNumber !== undefined && object.partsCount !== undefined) {
    headers.push(["x-amz-mp-parts-count", String(object.partsCount)]);
  }
  return { status: range === undefined ? 200 : 206, headers };
}

// A 304 has the caching headers of a 200 (RFC 9110 section 15.4.5).
async function explain(context: OperationContext, error: unknown): Promise<unknown> {
  if (error instanceof StoreError && error.code === "NotModified") {
    const { headers } = toS3Error(error);
    const freshness = getFreshnessHeaders(context, error.details.freshness ?? {});
    return new S3Error("NotModified", { headers: [...headers, ...freshness] });
  }
  return hideMissing(context, error);
}
