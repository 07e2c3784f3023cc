// Parses `x-amz-copy-source`: the object version that is copied.
import { decodeUri } from "../sigv4/index.ts";
import { S3Error } from "../../model/s3-error.ts";
import { decodeFieldText } from "./fields.ts";

/** The source of a copy. */
export interface CopySource {
  bucketName: string;
  key: string;
  versionId: string | undefined;
}

/**
 * Parses `bucket/key?versionId=…`, with or without a leading slash. The whole may be encoded, including its slashes; the
 * `?` before a version never is. `undefined` without a bucket and a key. Throws InvalidArgument for an invalid encoding.
 */
export function parseCopySource(field: string): CopySource | undefined {
  const [, path, version] = /^(.*?)(?:\?versionId=([^&]*))?$/s.exec(decodeFieldText(field))!;
  const match = /^\/?([^/]+)\/(.+)$/s.exec(decode(path!));
  if (match === null) return undefined;
  const versionId = version === undefined || version === "" ? undefined : decode(version);
  return { bucketName: match[1]!, key: match[2]!, versionId };
}

function decode(text: string): string {
  try {
    return decodeUri(text);
  } catch (error) {
    throw error instanceof S3Error
      ? new S3Error("InvalidArgument", "Invalid copy source encoding.")
      : error;
  }
}
