// A log on a simulated disk, and short ways to append to it.
import { encodeBatch } from "../../src/batch/index.ts";
import type { Log, LogOptions, PartitionView } from "../../src/index.ts";
import { Random } from "./random.ts";
import { SimClock, SimDisk } from "./sim-disk.ts";
import { openSimulated } from "./workload.ts";

/** A log with its disk and clock. */
export interface Fixture {
  log: Log;
  disk: SimDisk;
  clock: SimClock;
  random: Random;
}

/** Opens a log on a new simulated disk, or on `disk`. */
export async function openFixture(
  options: Partial<LogOptions> = {},
  disk?: SimDisk,
): Promise<Fixture> {
  const random = new Random(7);
  const clock = new SimClock();
  const used = disk ?? new SimDisk(random);
  return { log: await openSimulated(used, clock, random, options), disk: used, clock, random };
}

/** One record as a batch: `key=value`, or a tombstone for `key=`; without `=` there is no key. */
export function batchOf(text: string, timestamp = 1, fields = {}): Buffer {
  return encodeBatch([recordOf(text, timestamp)], fields);
}

/** A record from the text form of `batchOf`. */
export function recordOf(text: string, timestamp = 1) {
  const at = text.indexOf("=");
  const key = at < 0 ? null : Buffer.from(text.slice(0, at));
  const value = at === text.length - 1 ? null : Buffer.from(text.slice(at + 1));
  return { key, value, headers: [], timestamp };
}

/** Appends each text as its own batch and waits for all of them. */
export async function appendAll(
  log: Log,
  partition: PartitionView,
  texts: readonly string[],
  timestamp = 1,
): Promise<void> {
  await Promise.all(
    texts.map((text) => log.append([{ partition, batch: batchOf(text, timestamp) }])),
  );
}
