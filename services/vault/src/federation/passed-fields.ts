// The headers of a request that go to the remote of a federated bucket, and those of its answer that come back.
import type { IncomingHttpHeaders } from "node:http";
import type { Header } from "../s3/answer.ts";
import type { RequestFields } from "../s3/wire/fields.ts";

/** Headers of requests besides those of S3. */
const PASSED: ReadonlySet<string> = new Set([
  "accept",
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-md5",
  "content-type",
  "expires",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-unmodified-since",
  "range",
]);
/** Headers of S3 that are about this request alone: its signature, its coding, its caller. */
const OWN: ReadonlySet<string> = new Set([
  "x-amz-content-sha256",
  "x-amz-date",
  "x-amz-decoded-content-length",
  "x-amz-expected-bucket-owner",
  "x-amz-hops",
  "x-amz-sdk-checksum-algorithm",
  "x-amz-security-token",
  "x-amz-source-expected-bucket-owner",
  "x-amz-trailer",
  "x-amz-user-agent",
]);
/** Headers of answers that are about the connection, or that this store answers itself. */
const NOT_RETURNED: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "date",
  "keep-alive",
  "server",
  "transfer-encoding",
  "x-amz-id-2",
  "x-amz-request-id",
  "x-rgw-object-type",
]);
/** Parameters that older signatures add to a URL. */
const SIGNATURE_PARAMETERS: ReadonlySet<string> = new Set([
  "AWSAccessKeyId",
  "Signature",
  "Expires",
  "x-id",
]);

/** The headers to send. */
export function listSentFields(fields: RequestFields): Record<string, string> {
  const sent: Record<string, string> = {};
  for (const [name, value] of fields.entries()) {
    const isExtension = name.startsWith("x-amz-") && !OWN.has(name);
    if (!isExtension && !PASSED.has(name)) continue;
    if (name !== "content-encoding") sent[name] = value;
    else {
      const rest = value.split(",").filter((one) => one.trim().toLowerCase() !== "aws-chunked");
      if (rest.length > 0) sent[name] = rest.join(",").trim();
    }
  }
  return sent;
}

/** The query to send. */
export function listSentQuery(
  others: readonly (readonly [name: string, value: string])[],
): (readonly [string, string])[] {
  return others.filter(
    ([name]) => !SIGNATURE_PARAMETERS.has(name) && !/^x-(?:amz|store)-/i.test(name),
  );
}

/** The headers to return. */
export function listReturnedFields(headers: IncomingHttpHeaders): Header[] {
  const returned: Header[] = [];
  for (const name in headers) {
    const value = headers[name];
    if (typeof value !== "string" || NOT_RETURNED.has(name) || name.startsWith("x-store-"))
      continue;
    returned.push([toCanonical(name), value]);
  }
  return returned;
}

// As this store writes them.
function toCanonical(name: string): string {
  if (name.startsWith("x-amz-")) return name;
  const known = CANONICAL.get(name);
  if (known !== undefined) return known;
  const made = name
    .replaceAll(/(?:^|-)[a-z]/g, (text) => text.toUpperCase())
    .replace("Etag", "ETag");
  if (CANONICAL.size < CANONICAL_MAX) CANONICAL.set(name, made);
  return made;
}

/** Stores have few names. */
const CANONICAL_MAX = 200;
const CANONICAL = new Map<string, string>();
