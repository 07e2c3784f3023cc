// Parses the signature of Version 4 from the Authorization header or the query of a presigned URL.
import { S3Error } from "../../model/s3-error.ts";
import type { RequestFields } from "../wire/fields.ts";
import type { PresignedParameters, PresignName, RequestQuery } from "../wire/query.ts";
import { parseBasicTime, type SigningScope } from "@platform/s3/signature";

const ALGORITHM = "AWS4-HMAC-SHA256";
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
/** The engine's limit of headers: SDKs sign each metadata header. */
const SIGNED_HEADERS_MAX = 512;
/** Seven days, the maximum lifetime of a presigned URL. */
const EXPIRES_SECONDS_MAX = 604_800;

/** A signature that has not been verified yet. */
export interface SignatureClaim {
  kind: "header" | "query";
  accessKey: string;
  /** The access key and the scope, as received. */
  credential: string;
  scope: SigningScope;
  signedHeaders: string[];
  signature: string;
  /** As received, `YYYYMMDDTHHMMSSZ`. */
  timestamp: string;
  timeMs: number;
  /** The additional parameters of a presigned URL. */
  presigned?: PresignedClaim;
}

/** The additional parameters of a presigned URL. */
interface PresignedClaim {
  /** Lifetime of the URL. */
  expiresSeconds: number;
  /** The name of the signature parameter as received. */
  signatureName: string;
  /** Hash of the body, if the URL names it. */
  contentSha256: string | undefined;
  /** Session token. */
  token: string | undefined;
}

/** Finds a credential that was parsed before. */
export type RecallCredential = (text: string) => Credential | undefined;

/** Parses the signature of a request; `undefined` for an anonymous one. Throws the S3Error of a malformed signature. */
export function readSignatureClaim(
  fields: RequestFields,
  { presigned }: RequestQuery,
  recall: RecallCredential,
): SignatureClaim | undefined {
  // An empty header counts as missing.
  const authorization = fields.get("authorization") || undefined;
  if (authorization !== undefined && presigned?.Signature !== undefined) {
    throw new S3Error("InvalidArgument", "Only one auth mechanism allowed");
  }
  if (authorization !== undefined) return readAuthorization(authorization, fields, recall);
  const isClaimed = presigned?.Signature !== undefined || presigned?.Algorithm !== undefined;
  return isClaimed ? readPresignedQuery(presigned, recall) : undefined;
}

function readAuthorization(
  text: string,
  fields: RequestFields,
  recall: RecallCredential,
): SignatureClaim {
  if (!text.startsWith(`${ALGORITHM} `)) {
    if (text === ALGORITHM) throw malformedHeader("Credential is required");
    if (text.startsWith("AWS4-")) throw new S3Error("UnsupportedSignature");
    throw new S3Error("InvalidArgument", {
      message: "Unsupported Authorization Type",
      elements: [["ArgumentName", "Authorization"]],
    });
  }
  const parts = new Map<string, string>();
  for (const part of text.slice(ALGORITHM.length + 1).split(",")) {
    const at = part.indexOf("=");
    if (at < 0) throw malformedHeader("a component has no value");
    const name = part.slice(0, at).trim();
    if (parts.has(name)) throw malformedHeader(`${name} came twice`);
    parts.set(name, part.slice(at + 1).trim());
  }
  const credential = parts.get("Credential");
  const signedHeaders = parts.get("SignedHeaders");
  const signature = parts.get("Signature");
  if (credential === undefined || signedHeaders === undefined || signature === undefined) {
    throw malformedHeader("Credential, SignedHeaders and Signature are required");
  }
  const { accessKey, scope } = recall(credential) ?? readCredential(credential, malformedHeader);
  const { timestamp, timeMs } = readRequestTime(fields);
  if (!timestamp.startsWith(scope.date)) {
    throw malformedHeader(
      `Invalid credential date "${scope.date}". This date is not the same as X-Amz-Date: "${timestamp.slice(0, 8)}".`,
    );
  }
  return {
    kind: "header",
    accessKey,
    credential,
    scope,
    signedHeaders: readSignedHeaders(signedHeaders, malformedHeader),
    signature,
    timestamp,
    timeMs,
  };
}

// A signed request may have Date instead of X-Amz-Date; the string to sign then contains its basic form.
function readRequestTime(fields: RequestFields): { timestamp: string; timeMs: number } {
  const amzDate = fields.get("x-amz-date");
  if (amzDate !== undefined) {
    const timeMs = parseBasicTime(amzDate);
    if (timeMs === undefined) {
      throw new S3Error(
        "AccessDenied",
        "AWS authentication requires a valid Date or x-amz-date header",
      );
    }
    return { timestamp: amzDate, timeMs };
  }
  const date = fields.get("date") ?? "";
  const timeMs = parseBasicTime(date) ?? Date.parse(date);
  if (Number.isNaN(timeMs)) {
    throw new S3Error(
      "AccessDenied",
      "AWS authentication requires a valid Date or x-amz-date header",
    );
  }
  const timestamp = new Date(timeMs).toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  return { timestamp, timeMs };
}

function readPresignedQuery(
  parameters: PresignedParameters,
  recall: RecallCredential,
): SignatureClaim {
  const read = (which: PresignName): string => {
    const found = parameters[which];
    if (found === undefined || found.isRepeated) {
      throw malformedQuery(
        "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters, each of them once.",
      );
    }
    return found.pair[1];
  };
  if (read("Algorithm") !== ALGORITHM) {
    throw malformedQuery(`X-Amz-Algorithm only supports "${ALGORITHM}"`);
  }
  const credential = read("Credential");
  const { accessKey, scope } = recall(credential) ?? readCredential(credential, malformedQuery);
  const timestamp = read("Date");
  const timeMs = parseBasicTime(timestamp);
  if (timeMs === undefined) {
    throw malformedQuery("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"");
  }
  if (!timestamp.startsWith(scope.date)) {
    throw malformedQuery(
      `Invalid credential date "${scope.date}". This date is not the same as X-Amz-Date: "${timestamp.slice(0, 8)}".`,
    );
  }
  const expires = read("Expires");
  if (/^-\d{1,9}$/.test(expires)) throw malformedQuery("X-Amz-Expires must be non-negative");
  if (!/^\d{1,9}$/.test(expires)) throw malformedQuery("X-Amz-Expires should be a number");
  const expiresSeconds = Number(expires);
  if (expiresSeconds > EXPIRES_SECONDS_MAX) {
    throw malformedQuery(
      "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than 604800 seconds",
    );
  }
  return {
    kind: "query",
    accessKey,
    credential,
    scope,
    signedHeaders: readSignedHeaders(read("SignedHeaders"), malformedQuery),
    signature: read("Signature"),
    timestamp,
    timeMs,
    presigned: {
      expiresSeconds,
      signatureName: parameters.Signature!.pair[0],
      contentSha256: parameters["Content-Sha256"]?.pair[1],
      token: parameters["Security-Token"]?.pair[1],
    },
  };
}

/** An access key and the scope of its signature. */
export interface Credential {
  accessKey: string;
  scope: SigningScope;
}

type Complaint = (detail: string) => S3Error;

/** Parses `AKID/20130524/us-east-1/s3/aws4_request`; an access key may contain slashes. */
export function readCredential(text: string, complain: Complaint): Credential {
  const parts = text.split("/");
  const [date, region, service, end] = parts.slice(-4);
  const accessKey = parts.slice(0, -4).join("/");
  if (accessKey === "" || end !== "aws4_request") {
    throw complain(
      'the Credential is malformed; expecting "<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request".',
    );
  }
  if (!/^\d{8}$/.test(date!)) {
    throw complain(
      `incorrect date format "${date}". This date in the credential must be in the format "yyyyMMdd".`,
    );
  }
  if (service !== "s3") {
    throw complain(`incorrect service "${service}". This endpoint belongs to "s3".`);
  }
  return { accessKey, scope: { date: date!, region: region!, service } };
}

function readSignedHeaders(text: string, complain: Complaint): string[] {
  const names = text.split(";");
  if (names.length > SIGNED_HEADERS_MAX) throw complain("there are too many SignedHeaders.");
  if (!names.every((name) => HEADER_NAME.test(name))) throw complain("SignedHeaders is malformed.");
  if (!names.includes("host")) throw complain("SignedHeaders must contain host.");
  return names;
}

function malformedHeader(detail: string): S3Error {
  return new S3Error(
    "AuthorizationHeaderMalformed",
    `The authorization header is malformed; ${detail}`,
  );
}

function malformedQuery(detail: string): S3Error {
  return new S3Error("AuthorizationQueryParametersError", detail);
}
