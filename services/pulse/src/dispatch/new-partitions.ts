// Partitions that a topic gains: its groups read them from their start, also if the broker is killed meanwhile.
import type { Offsets } from "../store/offsets.ts";
import type { PendingRecord, Store } from "../store/store.ts";
import type { SharedSubscription } from "./shared-subscription.ts";

interface PositionStores {
  store: Store;
  offsets: Offsets;
  onError: (error: unknown) => void;
}

/** Stores the groups' positions in the partitions from `first` to below `total`, before these exist. */
export async function storeStarts(
  { store, offsets }: PositionStores,
  groups: Iterable<SharedSubscription>,
  first: number,
  total: number,
): Promise<void> {
  const pendingRecords: PendingRecord[] = [];
  for (const { tenant, name, topic } of groups) {
    pendingRecords.push(...offsets.toPendingStarts(tenant, name, topic, first, total));
  }
  await store.append(pendingRecords);
}

/** Lets the groups of a topic that has gained partitions read these. */
export function followNewPartitions(
  { store, offsets, onError }: PositionStores,
  groups: Iterable<SharedSubscription>,
): void {
  const pendingRecords: PendingRecord[] = [];
  for (const group of groups) {
    const { tenant, name, topic } = group;
    const commits = addNewPartitions(group).map((partition) => ({ topic, partition, offset: 0 }));
    if (commits.length === 0) continue;
    // A group that was created after `storeStarts` has no stored position yet.
    pendingRecords.push(...offsets.toPendingCommits(tenant, name, commits));
    offsets.apply(tenant, name, commits);
  }
  store.append(pendingRecords).catch(onError);
}

/** Adds the partitions that a group does not read yet, from their start; returns their numbers. */
export function addNewPartitions(group: SharedSubscription): number[] {
  const added: number[] = [];
  for (const { index } of group.topic.stored.partitions) {
    if (group.has(index)) continue;
    group.seek(index, { low: 0, ranges: [] });
    added.push(index);
  }
  return added;
}
