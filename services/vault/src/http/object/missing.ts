// What is told of a key that is not there.
import { StoreError } from "../../store.ts";
import type { ObjectInfo } from "../../store.ts";
import { S3Error } from "../../wire/error.ts";
import { mayListBucket } from "../authorization.ts";
import type { OperationContext } from "../context.ts";
import { getAddress } from "./address.ts";

/** Who may not list a bucket does not learn which keys are missing: AccessDenied in place of NoSuchKey. */
export async function hideMissing(context: OperationContext, error: unknown): Promise<unknown> {
  if (!(error instanceof StoreError) || error.code !== "NoSuchKey") return error;
  return (await mayListBucket(context)) ? error : new S3Error("AccessDenied");
}

/** What is known of the object that a request names, its bytes apart; what is missing is hidden as by `hideMissing`. */
export async function describeObject(context: OperationContext): Promise<ObjectInfo> {
  try {
    return await context.api.store.describeObject(getAddress(context));
  } catch (error) {
    throw await hideMissing(context, error);
  }
}
