// The string to sign of Version 2 ("Signing and authenticating REST requests" in the developer guide).
import { createHmac } from "node:crypto";
import { S3Error } from "../../model/s3-error.ts";
import { type RequestFields, toPresignedField } from "../wire/fields.ts";

/** Signed parameters: subresources and their refinements. */
const SIGNED: ReadonlySet<string> = new Set([
  "accelerate",
  "acl",
  "analytics",
  "cors",
  "delete",
  "inventory",
  "lifecycle",
  "location",
  "logging",
  "metrics",
  "notification",
  "object-lock",
  "partNumber",
  "policy",
  "replication",
  "requestPayment",
  "response-cache-control",
  "response-content-disposition",
  "response-content-encoding",
  "response-content-language",
  "response-content-type",
  "response-expires",
  "restore",
  "select",
  "select-type",
  "tagging",
  "torrent",
  "uploadId",
  "uploads",
  "versionId",
  "versioning",
  "versions",
  "website",
]);

/** Unsigned parameters that do not change what the signature was made for. */
const FREE: ReadonlySet<string> = new Set([
  "AWSAccessKeyId",
  "Expires",
  "Signature",
  "bucket-region",
  "continuation-token",
  "delimiter",
  "encoding-type",
  "fetch-owner",
  "key-marker",
  "list-type",
  "marker",
  "max-buckets",
  "max-keys",
  "max-parts",
  "max-uploads",
  "part-number-marker",
  "prefix",
  "start-after",
  "upload-id-marker",
  "version-id-marker",
]);

/** The input of a signature. */
export interface OlderParts {
  method: string;
  /** Path of the target as received. */
  rawPath: string;
  query: readonly (readonly [name: string, value: string])[];
  fields: RequestFields;
  /** The bucket in the Host, if any. */
  hostedBucket: string | undefined;
  /** Parameters that the operation ignores. */
  ignoredParameters?: ReadonlySet<string> | undefined;
  /** The date as signed. */
  date: string;
}

/**
 * The possible signed texts, in latin1: some clients sign a parameter without a value with a trailing `=`, and the path of
 * a bucket with a trailing slash. Throws AccessDenied if the request has parts that this version does not sign.
 */
export function buildOlderStrings(parts: OlderParts): string[] {
  const { method, date } = parts;
  const head = [
    method,
    readField(parts, "content-md5"),
    readField(parts, "content-type"),
    date,
    ...buildExtensionLines(parts),
  ].join("\n");
  const resources = listPaths(parts).flatMap((path) =>
    listSubresources(parts).map((subresources) => path + subresources),
  );
  return resources.map((resource) => `${head}\n${resource}`);
}

/** The signature of a text in latin1, base64. */
export function signOlder(secret: string, text: string): string {
  return createHmac("sha1", secret).update(text, "latin1").digest("base64");
}

// Headers in the query of a presigned URL are signed like headers.
function readField({ fields, query }: OlderParts, name: string): string {
  const value = fields.getRaw(name);
  if (value !== undefined) return value.trim();
  return toLatin1(query.find(([given]) => toPresignedField(given) === name)?.[1] ?? "");
}

function buildExtensionLines(parts: OlderParts): string[] {
  const { fields, query } = parts;
  const stranger = fields.extensionNames.find((name) => !name.startsWith("x-amz-"));
  if (stranger !== undefined) throw notSigned("headers", "HeadersNotSigned", stranger);
  const inQuery = query
    .map(([name]) => name.toLowerCase())
    .filter((name) => name.startsWith("x-amz-"));
  const names = new Set([...fields.extensionNames, ...inQuery]);
  return [...names].sort().map((name) => `${name}:${readField(parts, name)}`);
}

function listPaths({ rawPath, hostedBucket }: OlderParts): string[] {
  if (hostedBucket !== undefined) return [`/${hostedBucket}${rawPath}`];
  const isBucket = rawPath !== "/" && !rawPath.includes("/", 1);
  return isBucket ? [rawPath, `${rawPath}/`] : [rawPath];
}

function listSubresources({ query, ignoredParameters }: OlderParts): string[] {
  const isFree = (name: string): boolean => {
    if (FREE.has(name) || ignoredParameters?.has(name) === true) return true;
    const field = toPresignedField(name);
    return field !== undefined && !field.startsWith("x-store-");
  };
  const stranger = query.find(([name]) => !SIGNED.has(name) && !isFree(name));
  if (stranger !== undefined) throw notSigned("parameters", "ParametersNotSigned", stranger[0]);
  const signed = query
    .filter(([name]) => SIGNED.has(name))
    .sort(([a], [b]) => (a === b ? 0 : a < b ? -1 : 1));
  if (signed.length === 0) return [""];
  const join = (afterName: string): string => {
    const texts = signed.map(([name, value]) => name + (value === "" ? afterName : `=${value}`));
    return `?${toLatin1(texts.join("&"))}`;
  };
  return signed.some(([, value]) => value === "") ? [join(""), join("=")] : [join("")];
}

function notSigned(what: string, element: string, name: string): S3Error {
  return new S3Error("AccessDenied", {
    message: `There were ${what} present in the request which Signature Version 2 does not sign. Please use AWS4-HMAC-SHA256.`,
    elements: [[element, name.slice(0, 128)]],
  });
}

// Header values are bytes read as latin1, and so is the signed text.
function toLatin1(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
