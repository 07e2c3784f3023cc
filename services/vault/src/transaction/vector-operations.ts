// The vector of an existing version, inside the writer: set, replaced, removed.
import { encodeKey } from "../index/records.ts";
import type { ObjectAddress } from "../model/object.ts";
import { requireQuota } from "../model/quota.ts";
import { requireVersion } from "./attribute-operations.ts";
import { removeVector, setVector } from "./vector-rows.ts";
import type { WriterContext } from "./writer-context.ts";

/** Sets the vector of a version; without `vector` (little-endian floats) removes it. */
export interface SetVectorOperation {
  type: "setVector";
  address: ObjectAddress;
  vector?: Uint8Array;
}

/** Applies the change of a vector. */
export function applySetVector(
  context: WriterContext,
  { address, vector }: SetVectorOperation,
): { versionId: string } {
  const state = context.requireBucket(address.bucket);
  const { row } = requireVersion(context, state.id, address);
  const key = encodeKey(address.key);
  if (vector === undefined) removeVector(context, state.id, key, row.version);
  else {
    requireQuota(state.bucket, context.usage.read(state.id), vector.length, 0);
    setVector(context, state, key, row.version, vector);
  }
  return { versionId: row.version };
}
