// The place of a fault in a document, for errors of operations whose body was JSON.
import { PlatformError } from "@platform/kernel/errors";
import { type PathSegment, S3Error } from "../../model/s3-error.ts";

/** Returns the result, or throws its refusal with the place in the caller's document. `locate` converts places of S3. */
export async function namePlace<Result>(
  locate: (place: readonly PathSegment[]) => PathSegment[],
  work: Promise<Result>,
): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof PlatformError) || !(error.cause instanceof S3Error)) throw error;
    const { status, code, reason, path, headers } = error.cause;
    if (status !== 400) throw error;
    const fault = { in: "body", path: locate(path).join("."), message: reason };
    throw new PlatformError(error.code, `${code}: ${reason}`, {
      headers: Object.fromEntries(headers),
      fields: { ...error.fields, errors: [fault] },
      cause: error.cause,
    });
  }
}
