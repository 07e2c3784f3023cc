// Finds the operation of a request in the table of operations.
import { S3Error } from "../model/s3-error.ts";
import type { Operation } from "./context.ts";
import { OPERATIONS } from "./operations.ts";
import type { Address, Level } from "./wire/address.ts";
import { type RequestFields, toPresignedField } from "./wire/fields.ts";
import type { RequestQuery } from "./wire/query.ts";

const KEY_BYTES_MAX = 1_024;

/** Operations without query parameters, by method. */
const PLAIN: Readonly<Record<Level, ReadonlyMap<string, Operation>>> = {
  service: listPlain("service"),
  bucket: listPlain("bucket"),
  object: listPlain("object"),
};

function listPlain(level: Level): Map<string, Operation> {
  const rows = OPERATIONS.filter((row) => row.level === level && row.parameters.length === 0);
  return new Map(rows.map((row) => [row.method, row]));
}

/** Items of the table that stand for header fields. */
const OF_FIELDS: ReadonlySet<string> = new Set(["copy", "form"]);
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/** Parameters that select operations that no resource has yet. */
const UNAVAILABLE: ReadonlySet<string> = new Set([
  "abac",
  "append",
  "events",
  "metadataConfiguration",
  "metadataInventoryTable",
  "metadataJournalTable",
  "metadataTable",
  "renameObject",
  "encryption-context",
  "session",
  "torrent",
]);
/** Parameters that belong to a subresource. */
const BELONGING: Readonly<Record<string, ReadonlySet<string>>> = {
  transform: new Set(["module", "target-key", "target-bucket"]),
  triggers: new Set(["runs"]),
  replication: new Set(["status"]),
};
/** Parameters that select another operation; they never refine one. */
const SUBRESOURCES: ReadonlySet<string> = new Set(
  OPERATIONS.flatMap((row) => row.parameters).filter((name) => !OF_FIELDS.has(name)),
);
/** Subresources that refine a read as well: it returns one part of the object. */
const PARAMETERS: ReadonlySet<string> = new Set(["partNumber"]);

/** Parameters of URLs that were presigned with Signature Version 2. */
const OLDER_PARAMETERS: ReadonlySet<string> = new Set(["AWSAccessKeyId", "Signature", "Expires"]);

/** Parameters that writes accept. Any other parameter of a write is refused, never ignored. */
const WRITE_PARAMETERS: ReadonlySet<string> = new Set(["versionId", "partNumber", "uploadId"]);

/** Questions whose text may be the body of a POST, which reads. */
const QUESTIONS: ReadonlySet<string> = new Set(["sql", "vector-search"]);

/** Subresources that a bucket can have several of, each with an `id`. */
const IDENTIFIED: ReadonlySet<string> = new Set([
  "analytics",
  "intelligent-tiering",
  "inventory",
  "metrics",
]);

/** The operation of a request. */
export interface ResolvedRequest {
  readonly operation: Operation;
  /** Parameters that the operation ignores. */
  readonly ignored: ReadonlySet<string>;
}

/**
 * Finds the operation of a request. Throws NotImplemented for subresources that are unknown or not implemented,
 * MethodNotAllowed for methods that the resource does not have, InvalidArgument for subresources that exclude each other.
 */
export function resolveOperation(
  method: string,
  address: Address,
  query: RequestQuery,
  fields: RequestFields,
): ResolvedRequest {
  refuseUnavailable(query);
  const asked = new Set<string>();
  const ignored = new Set<string>();
  const isSigned = query.isPresigned;
  const isOlder = query.has("AWSAccessKeyId");
  const isRead =
    method === "GET" ||
    method === "HEAD" ||
    (method === "POST" && query.others.some(([name]) => QUESTIONS.has(name)));
  for (const [given] of query.others) {
    // `lock` is this service's alias of `retention`.
    const name = given === "lock" && address.level === "object" ? "retention" : given;
    if (SUBRESOURCES.has(name)) asked.add(name);
    else if (query.others.some(([other]) => BELONGING[other]?.has(name) === true)) continue;
    else if (name === "id" && query.others.some(([other]) => IDENTIFIED.has(other))) continue;
    else if (isOlder && OLDER_PARAMETERS.has(name)) continue;
    else if (isSigned && toPresignedField(name) !== undefined) continue;
    else if (isIgnored(isRead, name, query.get(given)!)) ignored.add(name);
  }
  requireKeyLength(address.key);
  if (fields.has("x-amz-copy-source") && method === "PUT" && address.level === "object") {
    asked.add("copy");
  }
  const isForm = FORM_TYPE.test(fields.get("content-type") ?? "");
  if (isForm && method === "POST" && address.level === "service") asked.add("form");
  const operation = findOperation(method, address.level, asked);
  if (operation.createsVersion && query.has("versionId")) {
    throw new S3Error("InvalidArgument", {
      message: "This operation does not accept a version-id.",
      elements: [
        ["ArgumentName", "versionId"],
        ["ArgumentValue", query.get("versionId")!.slice(0, 128)],
      ],
    });
  }
  return { operation, ignored };
}

// First: its other parameters, such as select-type of select, say less about what is missing.
function refuseUnavailable(query: RequestQuery): void {
  const missing = query.others.find(([name]) => UNAVAILABLE.has(name));
  if (missing !== undefined)
    throw new S3Error("NotImplemented", `${missing[0]} is not available yet.`);
}

function findOperation(method: string, level: Level, asked: ReadonlySet<string>): Operation {
  const plain = asked.size === 0 ? PLAIN[level].get(method) : undefined;
  if (plain !== undefined) return plain;
  let best: Operation | undefined;
  let isKnownElsewhere = false;
  for (const row of OPERATIONS) {
    const { parameters } = row;
    if (row.level !== level || !parameters.every((item) => asked.has(item))) continue;
    if (row.method === method) {
      if (best === undefined || parameters.length > best.parameters.length) best = row;
    } else if (parameters.length > 0) {
      isKnownElsewhere = true;
    }
  }
  const isRead = method === "GET" || method === "HEAD";
  const rest = [...asked].filter(
    (item) => !best?.parameters.includes(item) && !(isRead && PARAMETERS.has(item)),
  );
  if (best !== undefined && rest.length === 0) return best;
  const missing = rest.find((item) => !isImplemented(level, item));
  if (missing !== undefined)
    throw new S3Error("NotImplemented", `${missing} is not available yet.`);
  if (best !== undefined && best.parameters.length > 0) {
    throw new S3Error(
      "InvalidArgument",
      `Conflicting query string parameters: ${[...best.parameters, ...rest].join(", ")}`,
    );
  }
  if (isKnownElsewhere || best === undefined) throw notAllowed(method, level, asked);
  throw new S3Error("InvalidArgument", `${rest.join(", ")} does not stand alone.`);
}

// With the allowed methods, as RFC 9110 section 15.5.6 requires.
function notAllowed(method: string, level: Level, asked: ReadonlySet<string>): S3Error {
  const rows = OPERATIONS.filter((row) => row.level === level);
  const isNamed = rows.some(({ parameters }) => parameters.some((item) => asked.has(item)));
  const fitting = rows.filter(
    ({ parameters }) =>
      parameters.length > 0 === isNamed && parameters.every((item) => asked.has(item)),
  );
  const methods = new Set(fitting.map((row) => row.method));
  return new S3Error("MethodNotAllowed", {
    headers: [["Allow", [...methods].join(", ")]],
    elements: [
      ["Method", method],
      ["ResourceType", level.toUpperCase()],
    ],
  });
}

// Every operation refuses such a key for its length, rather than answering that it does not exist.
function requireKeyLength(key: string): void {
  // A UTF-16 unit is three bytes at most.
  if (key.length * 3 <= KEY_BYTES_MAX) return;
  const size = Buffer.byteLength(key);
  if (size <= KEY_BYTES_MAX) return;
  throw new S3Error("KeyTooLongError", {
    elements: [
      ["Size", String(size)],
      ["MaxSizeAllowed", String(KEY_BYTES_MAX)],
    ],
  });
}

function isImplemented(level: Level, name: string): boolean {
  return OPERATIONS.some((row) => row.level === level && row.parameters.includes(name));
}

// Reads ignore unknown parameters (a page may add `?v=3` to the URL of a picture), writes refuse them. Parameters that begin
// with `x-` are the client's notes for the access log ("Adding custom log information" in the user guide), unless they
// stand for headers.
function isIgnored(isRead: boolean, name: string, value: string): boolean {
  if (/^x-/i.test(name)) return !/^x-(?:amz|store)-/i.test(name);
  if ((isRead ? READ_PARAMETERS : WRITE_PARAMETERS).has(name)) return false;
  // Bun adds `response-*` parameters to presigned writes, too.
  if ((isRead && value !== "") || name.startsWith("response-")) return true;
  throw new S3Error(
    "NotImplemented",
    `The query parameter ${JSON.stringify(name.slice(0, 64))} is not available yet.`,
  );
}

/** Parameters that reads accept. */
const READ_PARAMETERS: ReadonlySet<string> = new Set([
  "prefix",
  "delimiter",
  "marker",
  "start-after",
  "continuation-token",
  "key-marker",
  "version-id-marker",
  "upload-id-marker",
  "part-number-marker",
  "encoding-type",
  "fetch-owner",
  "max-keys",
  "max-parts",
  "max-uploads",
  "max-buckets",
  "bucket-region",
  "versionId",
  "response-content-type",
  "response-content-language",
  "response-expires",
  "response-cache-control",
  "response-content-disposition",
  "response-content-encoding",
]);
