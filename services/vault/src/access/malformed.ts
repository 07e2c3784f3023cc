// The error of invalid policies.
import { type PathSegment, S3Error } from "../model/s3-error.ts";

/** Builds MalformedPolicy with the reason, and its place in the part that is being read. */
export function malformedPolicy(detail: string, path: readonly PathSegment[] = []): S3Error {
  const message = `The policy is not valid: ${detail}.`;
  return new S3Error("MalformedPolicy", { message, reason: detail, path });
}
