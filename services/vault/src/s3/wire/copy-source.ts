// `x-amz-copy-source`: which object, or which version of it, a copy is made of.
import { decodeUri } from "../sigv4/index.ts";
import { S3Error } from "../../model/s3-error.ts";
import { decodeFieldText } from "./fields.ts";

/** What a copy is made of. */
export interface CopySource {
  bucketName: string;
  key: string;
  versionId: string | undefined;
}

/**
 * Reads `bucket/key?versionId=…`, with a slash before it or without. It may be encoded as a whole, slashes included; the
 * `?` before a version never is. Undefined where no bucket and key can be told apart; throws InvalidArgument where the
 * encoding is broken.
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
