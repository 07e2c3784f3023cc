// What is known of an object, its bytes apart.
import type { ObjectInfo } from "../../model/object.ts";
import { hideMissing } from "../authorization.ts";
import type { OperationContext } from "../context.ts";
import { getAddress } from "./address.ts";

/** The object that a request names; what is missing is hidden from who may not list. */
export async function describeObject(context: OperationContext): Promise<ObjectInfo> {
  try {
    return await context.api.store.objects.describe(getAddress(context));
  } catch (error) {
    throw await hideMissing(context, error);
  }
}
