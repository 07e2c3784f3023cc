// Errors of the store and of policies as problems of the admin API.
import { PlatformError } from "@platform/kernel/errors";
import { S3Error } from "../model/s3-error.ts";
import { StoreError } from "../model/store-error.ts";
import { toS3Error } from "../s3/answer.ts";

/** Returns the result, or throws the refusal as a PlatformError. */
export async function asProblem<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof StoreError || error instanceof S3Error)) throw error;
    const { status, code, message } = toS3Error(error);
    const kinds = {
      404: "not_found",
      409: "conflict",
      403: "forbidden",
      507: "insufficient_storage",
    } as const;
    const kind =
      kinds[status as keyof typeof kinds] ?? (status < 500 ? "validation_failed" : "unavailable");
    throw new PlatformError(kind, `${code}: ${message}`);
  }
}
