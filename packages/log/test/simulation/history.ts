// Records a workload's appends and results, and compares them with the contents of a log.
import assert from "node:assert/strict";
import type { StoredRecord } from "../../src/batch/index.ts";
import type { Log } from "../../src/index.ts";
import { readAll } from "./read-all.ts";

/** One entry of the workload: the values for each partition, and the result. */
export interface HistoryEntry {
  parts: { topic: string; partition: number; values: string[] }[];
  outcome: "waiting" | "acknowledged" | "failed";
  offsets: number[];
}

/** The state of a history at the time of a power cut. */
export interface HistoryMoment {
  entries: { entry: HistoryEntry; outcome: HistoryEntry["outcome"] }[];
  topics: string[];
  deleted: string[];
  trims: Map<string, number>;
}

/** Records everything in call order. */
export class History {
  readonly entries: HistoryEntry[] = [];
  readonly topics = new Set<string>();
  /** Topics whose deletion was requested. */
  readonly deleting = new Set<string>();
  readonly deleted = new Set<string>();
  /** Highest requested log start, and highest acknowledged one, by partition. */
  readonly trimAsked = new Map<string, number>();
  readonly trimDone = new Map<string, number>();

  moment(): HistoryMoment & { trimAsked: Map<string, number>; deleting: string[] } {
    return {
      entries: this.entries.map((entry) => ({ entry, outcome: entry.outcome })),
      topics: [...this.topics],
      deleted: [...this.deleted],
      deleting: [...this.deleting],
      trims: new Map(this.trimDone),
      trimAsked: new Map(this.trimAsked),
    };
  }
}

/**
 * Checks a recovered log: no acknowledged record is missing or moved, entries are complete or absent, order within a
 * partition holds, and there are no duplicate or unknown records.
 */
export async function judge(log: Log, moment: ReturnType<History["moment"]>): Promise<void> {
  assert.deepEqual(log.recovery.quarantined, [], "nothing was quarantined");
  assert.deepEqual(log.recovery.healed, [], "a crash is not taken for damage");
  for (const name of moment.topics) {
    if (moment.deleting.includes(name)) continue;
    assert.ok(log.topic(name) !== undefined, `topic ${name} is there`);
  }
  for (const name of moment.deleted) {
    assert.equal(log.topic(name), undefined, `topic ${name} stays deleted`);
  }
  const found = new Map<string, number>();
  const logStarts = new Map<string, number>();
  for (const topic of log.topics()) {
    for (const partition of topic.partitions) {
      const place = `${topic.name}/${partition.index}`;
      logStarts.set(place, partition.logStart);
      const asked = moment.trimAsked.get(place) ?? 0;
      assert.ok(
        partition.logStart <= asked,
        `${place} starts at ${partition.logStart} <= ${asked}`,
      );
      assert.ok(partition.logStart >= (moment.trims.get(place) ?? 0), `${place} was trimmed`);
      checkOrder(place, await readAll(log, partition, 2_000), partition.logStart, found);
    }
  }
  for (const { entry, outcome } of moment.entries)
    checkEntry(log, entry, outcome, found, logStarts);
}

function checkOrder(
  place: string,
  records: readonly StoredRecord[],
  logStart: number,
  found: Map<string, number>,
): void {
  let expected = -1;
  let lastEntry = -1;
  for (const record of records) {
    if (record.offset < logStart) continue;
    if (expected >= 0) assert.equal(record.offset, expected, `${place} has no gap`);
    expected = record.offset + 1;
    const value = record.value!.toString("latin1").split(" ")[0]!;
    const key = `${place} ${value}`;
    assert.ok(!found.has(key), `${key} is there once`);
    found.set(key, record.offset);
    const entry = Number(value.split("-")[0]);
    assert.ok(entry >= lastEntry, `${place}: entry ${entry} comes after ${lastEntry}`);
    lastEntry = entry;
  }
}

function checkEntry(
  log: Log,
  entry: HistoryEntry,
  outcome: HistoryEntry["outcome"],
  found: ReadonlyMap<string, number>,
  logStarts: ReadonlyMap<string, number>,
): void {
  let present = 0;
  let absent = 0;
  for (const [index, part] of entry.parts.entries()) {
    if (log.topic(part.topic) === undefined) continue;
    const place = `${part.topic}/${part.partition}`;
    const logStart = logStarts.get(place) ?? 0;
    for (const [at, value] of part.values.entries()) {
      const offset = found.get(`${place} ${value}`);
      const assigned = entry.offsets[index];
      // Only its offset tells whether a missing record was trimmed.
      if (offset === undefined && assigned !== undefined && assigned + at < logStart) continue;
      if (offset === undefined && assigned === undefined && logStart > 0) continue;
      if (offset === undefined) absent++;
      else present++;
      if (offset !== undefined && assigned !== undefined) {
        assert.equal(offset, assigned + at, `${value} is at its offset`);
      }
    }
  }
  if (outcome === "acknowledged") assert.equal(absent, 0, `${entryName(entry)} is whole`);
  assert.ok(present === 0 || absent === 0, `${entryName(entry)} is whole or absent`);
}

function entryName(entry: HistoryEntry): string {
  return `entry ${entry.parts[0]!.values[0]!.split("-")[0]} (${JSON.stringify(entry.parts.map((p) => `${p.topic}/${p.partition}`))})`;
}
