// The stored state of shared subscriptions: acknowledged ranges above the committed offset, and failed deliveries.
import { OffsetRanges, type StoredRanges } from "../store/offset-ranges.ts";
import type { Offsets } from "../store/offsets.ts";
import { readJson, type StateTable } from "../store/state.ts";
import type { PendingRecord } from "../store/store.ts";
import type { StoredFailures } from "./redelivery.ts";
import type { SharedSubscription } from "./shared-subscription.ts";

/** Key of the failed deliveries of one message. */
type FailureKey = [
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

/** A change of a group in one partition. */
export interface CursorChange {
  group: SharedSubscription;
  partition: number;
  cursor: StoredRanges;
  failures: StoredFailures;
}

/** The records of a change: committed offset, cursor, failed deliveries. */
export function toPendingChange(
  { state, offsets }: { state: StateTable; offsets: Offsets },
  { group, partition, cursor, failures }: CursorChange,
): PendingRecord[] {
  const { tenant, name, topic } = group;
  const commits = [{ topic, partition, offset: cursor.low }];
  return [
    ...offsets.toPendingCommits(tenant, name, commits),
    toPendingCursor(state, group, partition, cursor),
    ...failures.map(([offset, count]) => toPendingFailures(state, group, partition, offset, count)),
  ];
}

/** The stored state that groups take at startup. */
export class StoredCursors {
  readonly #state: StateTable;
  readonly #cursors = new Map<string, StoredRanges>();
  readonly #failures = new Map<string, [offset: number, count: number][]>();

  constructor(state: StateTable) {
    this.#state = state;
    for (const { key, value } of state.take("cursor")) {
      this.#cursors.set(JSON.stringify(key), readJson(value) as StoredRanges);
    }
    for (const { key, value } of state.take("failures")) {
      const [, tenant, name, id, partition, offset] = key as FailureKey;
      const place = JSON.stringify(["cursor", tenant, name, id, partition]);
      const stored = this.#failures.get(place) ?? [];
      stored.push([offset, Number(readJson(value))]);
      this.#failures.set(place, stored);
    }
  }

  /** The cursor and the failed deliveries of a group in a partition, whose committed offset is `low`. */
  take(
    group: SharedSubscription,
    partition: number,
    low: number,
  ): { cursor: StoredRanges; failures: StoredFailures } {
    const place = JSON.stringify(cursorKey(group, partition));
    const above = this.#cursors.get(place);
    const done = new OffsetRanges({ low, ranges: above?.low === low ? above.ranges : [] });
    const stored = this.#failures.get(place) ?? [];
    const completed = stored.filter(([offset]) => done.has(offset));
    if (completed.length === 0) this.#failures.delete(place);
    else this.#failures.set(place, completed);
    return { cursor: done.toStored(), failures: stored.filter(([offset]) => !done.has(offset)) };
  }

  /** The records that delete failures of completed messages and of deleted topics or groups. Empties the rest. */
  takeOrphans(): PendingRecord[] {
    const pendingRecords: PendingRecord[] = [];
    for (const [text, failures] of this.#failures) {
      const [, ...place] = JSON.parse(text) as [string, string, string, string, number];
      for (const [offset] of failures) {
        pendingRecords.push(this.#state.toPending(["failures", ...place, offset], null));
      }
    }
    this.#cursors.clear();
    this.#failures.clear();
    return pendingRecords;
  }
}
