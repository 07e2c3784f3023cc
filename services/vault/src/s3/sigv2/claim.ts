// Parses the signature of Version 2 from the Authorization header, or from the query of a presigned URL.
import { S3Error } from "../../model/s3-error.ts";
import type { RequestFields } from "../wire/fields.ts";
import type { RequestQuery } from "../wire/query.ts";

/** A signature that has not been verified yet. */
export interface OlderClaim {
  kind: "header" | "query";
  accessKey: string;
  /** Base64. */
  signature: string;
  /** The date as signed; "" if `x-amz-date` is signed instead. */
  date: string;
  /** The signing time of a header, or the expiry of a presigned URL. */
  timeMs: number;
}

/** Parses the signature of a request; `undefined` if it has none of this version. Throws the S3Error of a malformed one. */
export function readOlderClaim(fields: RequestFields, query: RequestQuery): OlderClaim | undefined {
  const authorization = fields.get("authorization");
  if (!query.isOlder) {
    return authorization !== undefined && /^AWS\s/.test(authorization)
      ? readAuthorization(authorization, fields)
      : undefined;
  }
  if (authorization !== undefined) {
    throw new S3Error("InvalidArgument", "Only one auth mechanism allowed");
  }
  return readPresignedQuery(query);
}

function readAuthorization(text: string, fields: RequestFields): OlderClaim {
  const match = /^AWS\s+([^\s:]+):([^\s:]+)$/.exec(text);
  if (match === null) {
    throw new S3Error("InvalidArgument", {
      message: "AWS authorization header is invalid. Expected AwsAccessKeyId:signature",
      elements: [
        ["ArgumentName", "Authorization"],
        ["ArgumentValue", text.slice(0, 256)],
      ],
    });
  }
  const own = fields.get("x-amz-date");
  const date = own ?? fields.get("date") ?? "";
  const timeMs = Date.parse(date);
  if (Number.isNaN(timeMs)) {
    throw new S3Error(
      "AccessDenied",
      "AWS authentication requires a valid Date or x-amz-date header",
    );
  }
  return {
    kind: "header",
    accessKey: match[1]!,
    signature: match[2]!,
    date: own === undefined ? date : "",
    timeMs,
  };
}

function readPresignedQuery({ pairs }: RequestQuery): OlderClaim {
  const read = (wanted: string): string => {
    const found = pairs.filter(([name]) => name === wanted);
    if (found.length === 1 && found[0]![1] !== "") return found[0]![1];
    throw new S3Error(
      "AccessDenied",
      "Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters",
    );
  };
  const [accessKey, signature, date] = [read("AWSAccessKeyId"), read("Signature"), read("Expires")];
  if (!/^\d{1,12}$/.test(date)) {
    throw new S3Error(
      "AccessDenied",
      `Invalid date (should be seconds since epoch): ${date.slice(0, 64)}`,
    );
  }
  return { kind: "query", accessKey, signature, date, timeMs: Number(date) * 1000 };
}
