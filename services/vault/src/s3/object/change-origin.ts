// The caller of a change of attributes, and the attributes that it has read.
import type { ChangeOrigin } from "../../model/object.ts";
import { getActor, type OperationContext } from "../context.ts";

/** The origin of a change of tags, retention or legal hold. */
export function getChangeOrigin(context: OperationContext): ChangeOrigin {
  const { expectedObject: expected } = context;
  return { actor: getActor(context), ...(expected === undefined ? {} : { expected }) };
}
