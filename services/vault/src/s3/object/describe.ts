// The information about an object without its bytes.
import type { ObjectInfo } from "../../model/object.ts";
import { hideMissing } from "../authorization.ts";
import type { OperationContext } from "../context.ts";
import { getAddress } from "./address.ts";

/** The object of a request. Callers that may not list the bucket do not learn that it is missing. */
export async function describeObject(context: OperationContext): Promise<ObjectInfo> {
  try {
    return await context.api.store.objects.describe(getAddress(context));
  } catch (error) {
    throw await hideMissing(context, error);
  }
}
