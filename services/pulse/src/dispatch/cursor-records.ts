// The stored state of shared subscriptions: acknowledged ranges above the committed offset, and failed deliveries.
import type { StoredRanges } from "../store/offset-ranges.ts";
import type { StateTable } from "../store/state.ts";
import type { PendingRecord } from "../store/store.ts";
import type { SharedSubscription } from "./shared-subscription.ts";

/** Key of the failed deliveries of one message. */
export type FailureKey = [
  kind: string,
  tenant: string,
  group: string,
  topicId: string,
  partition: number,
  offset: number,
];

/** Key of a group's cursor in one partition. */
export function cursorKey(group: SharedSubscription, partition: number) {
  const id = group.topic.stored.id.toString("hex");
  return ["cursor", group.tenant, group.name, id, partition] as const;
}

/** The record of a cursor. Without ranges the committed offset is enough, so the cursor is deleted. */
export function toPendingCursor(
  state: StateTable,
  group: SharedSubscription,
  partition: number,
  cursor: StoredRanges,
): PendingRecord {
  const key = cursorKey(group, partition);
  if (cursor.ranges.length === 0) return state.toPending(key, null);
  return state.toPendingJson(key, cursor);
}

/** The record of a message's failed deliveries; a count of 0 deletes it. */
export function toPendingFailures(
  state: StateTable,
  group: SharedSubscription,
  partition: number,
  offset: number,
  count: number,
): PendingRecord {
  const [, ...place] = [...cursorKey(group, partition), offset] as const;
  if (count === 0) return state.toPending(["failures", ...place], null);
  return state.toPendingJson(["failures", ...place], count);
}
