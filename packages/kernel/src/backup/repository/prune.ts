// Removes snapshots that are not kept, and objects that no snapshot names.
import { nameSnapshot, readSnapshotTime } from "./format.ts";
import { nameObject, OBJECT_FOLDER } from "./object-names.ts";
import { listPieces } from "./page-map.ts";
import type { Repository } from "./repository.ts";

const DAY_MS = 86_400_000;
/** The first Monday of the epoch was its fifth day. */
const MONDAY_MS = 4 * DAY_MS;

/** Snapshots to keep: the last ones, and the last ones of days and weeks (UTC, from Monday). At least one is kept. */
export interface KeepRule {
  last?: number | undefined;
  daily?: number | undefined;
  weekly?: number | undefined;
}

/** Numbers of removed snapshots and objects. */
export interface Pruned {
  snapshots: number;
  objects: number;
}

// The ids that a rule keeps; all without a rule. `ids` are in the order of time.
function chooseKept(ids: readonly string[], keep: KeepRule | undefined): Set<string> {
  if (keep === undefined) return new Set(ids);
  const { last = 0, daily = 0, weekly = 0 } = keep;
  const newest = ids.toReversed();
  const kept = new Set(newest.slice(0, Math.max(1, last)));
  const keepEach = (count: number, find: (timeMs: number) => number): void => {
    const seen = new Set<number>();
    for (const id of newest) {
      const unit = find(readSnapshotTime(id));
      if (seen.has(unit)) continue;
      if (seen.size >= count) return;
      seen.add(unit);
      kept.add(id);
    }
  };
  keepEach(daily, (timeMs) => Math.floor(timeMs / DAY_MS));
  keepEach(weekly, (timeMs) => Math.floor((timeMs - MONDAY_MS) / (7 * DAY_MS)));
  return kept;
}

/**
 * Removes snapshots that a rule does not keep, then objects that no snapshot names. Rejects before it removes an object if a
 * list is damaged: what it names is not known. The caller has the lock of the repository.
 */
export async function pruneRepository(
  repository: Repository,
  keep: KeepRule | undefined,
  signal?: AbortSignal,
): Promise<Pruned> {
  const { storage } = repository;
  const ids = await repository.listIds();
  const kept = chooseKept(ids, keep);
  const named = new Set<string>();
  const lists = new Set<string>();
  for (const id of kept) {
    signal?.throwIfAborted();
    for (const page of (await repository.load(id)).manifest.files) {
      named.add(nameObject(page.sha256));
      if (lists.has(page.sha256)) continue;
      lists.add(page.sha256);
      for (const entry of await repository.readList(page)) {
        for (const { sha256 } of listPieces(entry)) named.add(nameObject(sha256));
      }
    }
  }
  const removed = ids.filter((id) => !kept.has(id));
  for (const id of removed) await storage.remove(nameSnapshot(id));
  // A manifest that came back after a power failure must find its objects.
  await storage.flush();
  let objects = 0;
  for await (const name of storage.list(OBJECT_FOLDER)) {
    const isObject = name === nameObject(name.slice(name.lastIndexOf("/") + 1));
    if (!isObject || named.has(name)) continue;
    await storage.remove(name);
    objects += 1;
  }
  await storage.flush();
  return { snapshots: removed.length, objects };
}
