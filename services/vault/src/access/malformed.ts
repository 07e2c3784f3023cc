// The error of policies that cannot be used.
import { S3Error } from "../model/s3-error.ts";

/** MalformedPolicy with what is wrong. */
export function malformedPolicy(detail: string): S3Error {
  return new S3Error("MalformedPolicy", `The policy is not valid: ${detail}.`);
}
