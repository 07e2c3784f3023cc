// The meaning of failed requests to a remote, for the client of an object in it.
import { S3ClientError } from "@platform/s3";
import { StoreError } from "../model/store-error.ts";

/** The error that a client gets whose object could not be read from a remote. */
export function toReadError(error: unknown, remote: string): unknown {
  if (!(error instanceof S3ClientError)) return error;
  const cause = { cause: error };
  if (error.serverCode === "InvalidObjectState") {
    const text = "The operation is not valid for the object's storage class";
    return new StoreError("InvalidObjectState", text, {}, cause);
  }
  switch (error.code) {
    case "not_found":
    case "no_such_bucket":
    case "range_not_satisfiable":
    case "malformed_answer":
    case "checksum_mismatch": {
      const text = `The remote ${remote} does not have the stored data (${error.code})`;
      return new StoreError("InternalError", text, {}, cause);
    }
    default: {
      const text = `The remote ${remote} does not answer (${error.code})`;
      return new StoreError("ServiceUnavailable", text, {}, cause);
    }
  }
}
