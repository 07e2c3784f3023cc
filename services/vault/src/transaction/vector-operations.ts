// The vector of an existing version, inside the writer: set, replaced, removed.
import { encodeKey } from "../index/records.ts";
import type { ObjectAddress } from "../model/object.ts";
import type { TaskAddress } from "../model/task.ts";
import { requireQuota } from "../model/quota.ts";
import { requireVersion } from "./attribute-operations.ts";
import { applyEndTask } from "./task-operations.ts";
import { hasVector, removeVector, setVector } from "./vector-rows.ts";
import type { WriterContext } from "./writer-context.ts";

/** Sets the vector of a version; without `vector` (little-endian floats) removes it. */
export interface SetVectorOperation {
  type: "setVector";
  address: ObjectAddress;
  vector?: Uint8Array;
  /** The vector was computed by this task, which ends. It does not replace a vector that was given meanwhile. */
  task?: TaskAddress;
}

/** Applies the change of a vector. */
export function applySetVector(
  context: WriterContext,
  { address, vector, task }: SetVectorOperation,
): { versionId: string } {
  const state = context.requireBucket(address.bucket);
  const { row } = requireVersion(context, state.id, address);
  const key = encodeKey(address.key);
  if (task !== undefined) applyEndTask(context, { type: "endTask", task });
  if (vector === undefined) removeVector(context, state.id, key, row.version);
  else if (task === undefined || !hasVector(context, state.id, key, row.version)) {
    requireQuota(state.bucket, context.usage.read(state.id), vector.length, 0);
    setVector(context, state, key, row.version, vector);
  }
  return { versionId: row.version };
}
