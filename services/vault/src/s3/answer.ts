// Answers of the object API, and the conversion of errors to answers.
import type { ObjectBody } from "../model/object.ts";
import { S3Error } from "../model/s3-error.ts";
import { StoreError, type StoreErrorDetails } from "../model/store-error.ts";
import { toStoreName } from "./wire/fields.ts";
import { tag, wrap, XML_DECLARATION } from "./wire/xml.ts";

/** A header of an answer. */
export type Header = readonly [name: string, value: string];

/** The answer of an operation. */
export interface S3Answer {
  status: number;
  headers?: readonly Header[];
  body?: string | Buffer;
  /** The body of an object instead of `body`. The sender of the answer closes it. */
  object?: ObjectBody;
  /**
   * Size of the object's body; if it is unknown, the body is sent in chunks. Without `object` the body is not sent: HEAD of an
   * object.
   */
  contentLength?: number;
}

/** `x-amz-id-2`, and `HostId` of errors. All hosts have the same id, so that it reveals nothing. */
export const HOST_ID = "platform-vault";

/** Headers that all answers have. */
const SERVER: Header = ["Server", "platform-vault"];
const AMZ_HOST: Header = ["x-amz-id-2", HOST_ID];
const STORE_HOST: Header = ["x-store-id-2", HOST_ID];

const XML_TYPE: Header = ["Content-Type", "application/xml"];

/** 200 with an XML document. */
export function answerXml(document: string, headers: readonly Header[] = []): S3Answer {
  return { status: 200, headers: [XML_TYPE, ...headers], body: document };
}

/** 204, or another status, without a body. */
export function answerEmpty(status = 204, headers: readonly Header[] = []): S3Answer {
  return { status, headers };
}

/** Converts a thrown value to the error to answer. Unexpected values become InternalError, without details. */
export function toS3Error(error: unknown): S3Error {
  if (error instanceof S3Error) return error;
  if (!(error instanceof StoreError)) return new S3Error("InternalError", { cause: error });
  const { details } = error;
  const headers: Header[] = [];
  const elements: [string, string][] = [];
  if (details.bucket !== undefined) elements.push(["BucketName", details.bucket]);
  if (details.key !== undefined) elements.push(["Key", details.key]);
  if (details.versionId !== undefined && error.code === "NoSuchVersion")
    elements.push(["VersionId", details.versionId]);
  if (details.condition !== undefined) elements.push(["Condition", details.condition]);
  if (details.part !== undefined) elements.push(...describePart(details.part));
  if (details.deleteMarker === true) headers.push(["x-amz-delete-marker", "true"]);
  if (details.versionId !== undefined && namesVersion(error))
    headers.push(["x-amz-version-id", details.versionId]);
  if (details.modifiedMs !== undefined) {
    headers.push(["Last-Modified", new Date(details.modifiedMs).toUTCString()]);
  }
  if (error.code === "NotModified" && details.etag !== undefined)
    headers.push(["ETag", `"${details.etag}"`]);
  if (error.code === "MethodNotAllowed") headers.push(["Allow", "DELETE"]);
  if (error.code === "ServiceUnavailable" || error.code === "SlowDown")
    headers.push(["Retry-After", "1"]);
  if (error.code === "InvalidRange" && details.sizeBytes !== undefined) {
    headers.push(["Content-Range", `bytes */${details.sizeBytes}`]);
    elements.push(["ActualObjectSize", String(details.sizeBytes)]);
  }
  // An overloaded store is a fault of the server; `SlowDown` on the wire blames the client.
  const code = error.code === "SlowDown" ? "ServiceUnavailable" : error.code;
  return new S3Error(code, {
    message: error.message,
    headers,
    elements,
    cause: error,
  });
}

function describePart(part: NonNullable<StoreErrorDetails["part"]>): [string, string][] {
  const named: [string, string][] = [
    ["PartNumber", String(part.number)],
    ["ETag", part.etag],
  ];
  if (part.sizeBytes !== undefined) named.unshift(["ProposedSize", String(part.sizeBytes)]);
  if (part.bytesMin !== undefined) named.push(["MinSizeAllowed", String(part.bytesMin)]);
  return named;
}

// With a failed condition, a `null` version may belong to an unversioned bucket, so it is omitted.
function namesVersion({ code, details }: StoreError): boolean {
  return (
    code !== "NoSuchVersion" && (details.versionId !== "null" || details.deleteMarker === true)
  );
}

/**
 * The answer of an error: a document, except for 304. The sender drops it for HEAD. The error of a missing setting names
 * its bucket.
 */
export function answerError(
  error: S3Error,
  resource: string,
  requestId: string,
  bucketName = "",
): S3Answer {
  if (error.code === "NotModified") return { status: 304, headers: error.headers };
  const named = error.elements.map(([name, value]) => tag(name, value)).join("");
  const isNamed = bucketName === "" || error.elements.some(([name]) => name === "BucketName");
  const elements = isNamed ? named : tag("BucketName", bucketName) + named;
  const inner =
    tag("Code", error.code) +
    tag("Message", error.message) +
    elements +
    tag("Resource", resource) +
    tag("RequestId", requestId) +
    tag("HostId", HOST_ID);
  return {
    status: error.status,
    headers: [XML_TYPE, ...error.headers],
    body: XML_DECLARATION + wrap("Error", inner),
  };
}

/** The answer of an error in JSON: the code, the message, and the place in an expression. */
export function answerJsonError(error: S3Error, requestId: string): S3Answer {
  const { code, message, elements } = error;
  const place = Object.fromEntries(
    elements.flatMap(([name, value]) =>
      name === "Line" || name === "Column" ? [[name.toLowerCase(), Number(value)]] : [],
    ),
  );
  return {
    status: error.status,
    headers: [["Content-Type", "application/json"], ...error.headers],
    body: JSON.stringify({ code, message, ...place, request_id: requestId }),
  };
}

/** Python's HTTP client accepts a hundred lines; the engine adds a few. */
const LINES_MAX = 92;

/**
 * Completes the headers of an answer. Every x-amz- header is sent as an x-store- header as well; if that exceeds the limit
 * of lines, metadata is sent under its x-amz- names only.
 */
export function completeHeaders(
  requestId: string,
  ...sections: readonly (readonly Header[] | undefined)[]
): Header[] {
  const headers: Header[] = [
    SERVER,
    ["x-amz-request-id", requestId],
    ["x-store-request-id", requestId],
    AMZ_HOST,
    STORE_HOST,
  ];
  const given = sections.reduce((count, section) => count + (section?.length ?? 0), 0);
  const isLong = headers.length + 2 * given > LINES_MAX;
  for (const section of sections) {
    for (const header of section ?? []) {
      headers.push(header);
      if (isLong && header[0].startsWith("x-amz-meta-")) continue;
      const alias = toStoreName(header[0]);
      if (alias !== undefined) headers.push([alias, header[1]]);
    }
  }
  return headers;
}
