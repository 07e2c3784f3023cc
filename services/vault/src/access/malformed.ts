// The error of invalid policies.
import { S3Error } from "../model/s3-error.ts";

/** Builds MalformedPolicy with the reason. */
export function malformedPolicy(detail: string): S3Error {
  return new S3Error("MalformedPolicy", `The policy is not valid: ${detail}.`);
}
