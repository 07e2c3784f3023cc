// A random, repeatable workload: many small and some large appends, topics that are created and deleted.
import { encodeBatch, type NewRecord } from "../../src/batch/index.ts";
import { LogError, openLog, type Log, type LogOptions, type SyncMode } from "../../src/index.ts";
import type { History, HistoryEntry } from "./history.ts";
import type { Random } from "./random.ts";
import type { SimClock, SimDisk } from "./sim-disk.ts";

/** Limits so small that a few hundred appends exercise every part of the log. */
export const SMALL_LIMITS = {
  journalFileBytes: 6_000,
  checkpointBytes: 8_000,
  inPlaceBytesMin: 700,
  groupBytesMax: 3_000,
  openFilesMax: 3,
  indexBytesMax: 500,
  // The simulated disk decides when it is full; the reserve has its own tests.
  reserveBytes: 0,
} satisfies Partial<LogOptions>;

/** Opens a log on a simulated disk with the small limits. */
export function openSimulated(
  disk: SimDisk,
  clock: SimClock,
  random: Random,
  options: Partial<LogOptions> & { sync?: SyncMode } = {},
): Promise<Log> {
  const randomId = () => random.bytes(16);
  return openLog({ disk, clock, randomId, ...SMALL_LIMITS, ...options });
}

/** Runs `steps` steps; all promises of the log have settled when it returns. */
export async function runWorkload(
  log: Log,
  random: Random,
  clock: SimClock,
  history: History,
  steps: number,
): Promise<void> {
  const waiting: Promise<unknown>[] = [];
  for (const name of ["alpha", "beta"]) {
    await note(
      log.createTopic(name, { partitions: 2, config: { segmentBytes: 4_000 }, orGet: true }),
    );
    if (log.topic(name) !== undefined) history.topics.add(name);
  }
  for (let step = 0; step < steps; step++) {
    const choice = random.below(100);
    if (choice < 80) waiting.push(append(log, random, clock, history));
    else if (choice < 84) waiting.push(comeAndGo(log, random, history));
    else if (choice < 88) waiting.push(note(log.checkpoint()));
    else if (choice < 91) waiting.push(trim(log, random, history));
    else if (choice < 94) waiting.push(compact(log, random));
    else clock.advance(random.below(20_000));
    // Some steps share a microtask and a group, others wait for the disk.
    if (random.chance(0.4)) await waiting.at(-1);
  }
  await Promise.all(waiting);
}

async function append(log: Log, random: Random, clock: SimClock, history: History): Promise<void> {
  const topics = [...log.topics()].filter((topic) => topic.live);
  const entry: HistoryEntry = { parts: [], outcome: "waiting", offsets: [] };
  const number = history.entries.length;
  const partitions = random.chance(0.3) ? 2 : 1;
  const batches = [];
  for (let part = 0; part < partitions; part++) {
    const topic = random.pick(topics);
    if (topic === undefined) return;
    const partition = random.pick(topic.partitions);
    const values = Array.from(
      { length: 1 + random.below(4) },
      (_, at) => `${number}-${part}-${at}`,
    );
    const size = random.pick([10, 60, 300, 900]);
    const records = values.map((value): NewRecord => ({
      key: null,
      value: Buffer.from(`${value} `.padEnd(size, "x"), "latin1"),
      headers: [],
      timestamp: clock.now(),
    }));
    entry.parts.push({ topic: topic.name, partition: partition.index, values });
    batches.push({ partition, batch: encodeBatch(records) });
  }
  history.entries.push(entry);
  try {
    const results = await log.append(batches);
    entry.outcome = "acknowledged";
    entry.offsets = results.map((result) => result.baseOffset);
  } catch (error) {
    if (!(error instanceof LogError)) throw error;
    entry.outcome = "failed";
  }
}

let topicNumber = 0;

async function comeAndGo(log: Log, random: Random, history: History): Promise<void> {
  const passing = [...log.topics()].filter((topic) => topic.name.startsWith("passing"));
  const topic = passing[0];
  if (topic === undefined || random.chance(0.5)) {
    const name = `passing${topicNumber++}`;
    const created = await note(log.createTopic(name, { partitions: 1 + random.below(2) }));
    if (created) history.topics.add(name);
    return;
  }
  if (history.deleting.has(topic.name)) return;
  history.deleting.add(topic.name);
  if (await note(log.deleteTopic(topic))) history.deleted.add(topic.name);
}

async function trim(log: Log, random: Random, history: History): Promise<void> {
  const topic = log.topic("beta");
  if (topic === undefined) return;
  const partition = random.pick(topic.partitions);
  const place = `beta/${partition.index}`;
  const range = partition.durableEnd - partition.logStart;
  const before = partition.logStart + random.below(range + 1);
  history.trimAsked.set(place, Math.max(history.trimAsked.get(place) ?? 0, before));
  if (!(await note(log.deleteRecords(partition, before)))) return;
  history.trimDone.set(place, Math.max(history.trimDone.get(place) ?? 0, before));
}

// Records without keys are all kept, so compaction rewrites segments without visible changes.
async function compact(log: Log, random: Random): Promise<void> {
  const topic = log.topic(random.pick(["alpha", "beta"]));
  if (topic !== undefined) await note(log.compact(random.pick(topic.partitions)));
}

// Failures with a `LogError` are part of the run; anything else is a defect.
async function note(promise: Promise<unknown>): Promise<boolean> {
  try {
    await promise;
    return true;
  } catch (error) {
    if (!(error instanceof LogError) && (error as NodeJS.ErrnoException).code === undefined) {
      throw error;
    }
    return false;
  }
}
