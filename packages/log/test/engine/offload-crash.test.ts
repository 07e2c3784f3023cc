// Crashes at every step of the offload: nothing acknowledged is lost, and every object is one that the log refers to.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LogError, type ColdOptions, type Log, type LogOptions } from "../../src/index.ts";
import { batchOf } from "../simulation/fixture.ts";
import { Random } from "../simulation/random.ts";
import { readAll } from "../simulation/read-all.ts";
import { SimColdStore } from "../simulation/sim-cold-store.ts";
import { SimClock, SimDisk } from "../simulation/sim-disk.ts";
import { openSimulated } from "../simulation/workload.ts";

/** Number of states to check; soak tests set more. */
const STATES_WANTED = Number(process.env["PLATFORM_CRASH_STATES"] ?? 120);
const FIRST_SEED = Number(process.env["PLATFORM_CRASH_SEED"] ?? 1);
const PARTITIONS = 2;

/** Values that were acknowledged, by topic and partition and offset, and the requested log starts. */
interface Promises {
  values: Map<string, Map<number, string>>;
  starts: Map<string, number>;
  deleted: Set<string>;
}

interface State {
  disk: SimDisk;
  store: SimColdStore;
  promises: Promises;
}

const coldOf = (store: SimColdStore, random: Random): ColdOptions => ({
  store,
  cache: new SimDisk(random),
  cacheBytesMax: 1_000_000,
  isUploading: true,
  rollMs: 30_000,
});

function copyPromises({ values, starts, deleted }: Promises): Promises {
  return {
    values: new Map([...values].map(([place, offsets]) => [place, new Map(offsets)])),
    starts: new Map(starts),
    deleted: new Set(deleted),
  };
}

/** Runs a workload whose store fails now and then. Rejections of the log are part of it. */
async function work(log: Log, random: Random, clock: SimClock, promises: Promises): Promise<void> {
  const ignore = (error: unknown) => {
    if (!(error instanceof LogError)) throw error;
  };
  const config = { segmentBytes: 2_500, offload: true, localRetentionBytes: 3_000 };
  for (let step = 0; step < 70; step++) {
    const name = random.chance(0.8) ? "steady" : "passing";
    const choice = random.below(100);
    const topic = log.topic(name);
    if (topic === undefined) {
      if (promises.deleted.has(name)) continue;
      await log.createTopic(name, { partitions: PARTITIONS, config }).catch(ignore);
      continue;
    }
    const index = random.below(PARTITIONS);
    const place = `${name}/${index}`;
    const partition = topic.partitions[index]!;
    if (choice < 60) {
      const value = `${place}-${step} `.padEnd(random.pick([50, 800, 1_400]), "x");
      const appended = log.append([{ partition, batch: batchOf(value, clock.now()) }]);
      const noted = appended.then(([result]) => {
        const offsets = promises.values.get(place) ?? new Map<number, string>();
        promises.values.set(place, offsets.set(result!.baseOffset, value));
      }, ignore);
      if (random.chance(0.5)) await noted;
    } else if (choice < 78) await log.offload();
    else if (choice < 84) await log.checkpoint().catch(ignore);
    else if (choice < 90) {
      const before =
        partition.logStart + random.below(partition.durableEnd - partition.logStart + 1);
      promises.starts.set(place, Math.max(promises.starts.get(place) ?? 0, before));
      await log.deleteRecords(partition, before).catch(ignore);
    } else if (choice < 92 && name === "passing") {
      promises.deleted.add(name);
      await log.deleteTopic(topic).catch(ignore);
    } else clock.advance(random.below(40_000));
  }
}

async function collectStates(
  seed: number,
  crash: (disk: SimDisk, random: Random) => SimDisk,
): Promise<State[]> {
  const random = new Random(seed);
  const crashes = new Random(seed ^ 0x5eed);
  const clock = new SimClock();
  const disk = new SimDisk(random);
  const store = new SimColdStore(random);
  const promises: Promises = { values: new Map(), starts: new Map(), deleted: new Set() };
  const states: State[] = [];
  const take = () => {
    const copy = new SimColdStore(crashes, store.objects);
    states.push({ disk: crash(disk, crashes), store: copy, promises: copyPromises(promises) });
  };
  const failures = new Random(seed ^ 0xfa11);
  store.fault = () => {
    if (crashes.chance(0.15) && states.length < 40) take();
    return failures.chance(0.06) ? "unavailable" : undefined;
  };
  disk.onOperation = () => {
    if (crashes.chance(0.02) && states.length < 40) take();
  };
  const log = await openSimulated(disk, clock, random, { cold: coldOf(store, random) });
  await work(log, random, clock, promises);
  disk.onOperation = () => undefined;
  await log.close();
  return states;
}

async function judge(log: Log, { values, starts, deleted }: Promises): Promise<void> {
  assert.deepEqual([log.recovery.quarantined, log.recovery.healed], [[], []]);
  for (const [place, offsets] of values) {
    const [name, index] = place.split("/") as [string, string];
    const topic = log.topic(name);
    if (topic === undefined) {
      assert.ok(deleted.has(name), `topic ${name} is there`);
      continue;
    }
    const partition = topic.partitions[Number(index)]!;
    assert.ok(partition.logStart <= (starts.get(place) ?? 0), `${place} keeps its start`);
    const found = new Map(
      (await readAll(log, partition, 900)).map(({ offset, value }) => [offset, String(value)]),
    );
    for (const [offset, value] of offsets) {
      if (offset < partition.logStart) continue;
      assert.equal(found.get(offset), value, `${place} at ${offset}`);
    }
  }
}

async function judgeState({ disk, store, promises }: State, seed: number): Promise<void> {
  const random = new Random(seed ^ 0x0dd);
  const clock = new SimClock();
  const options: Partial<LogOptions> = { cold: coldOf(store, random) };
  let second: State | undefined;
  store.fault = () => {
    if (random.chance(0.1)) {
      const copy = new SimColdStore(random, store.objects);
      second = { disk: disk.kill(random), store: copy, promises };
    }
    return undefined;
  };
  const log = await openSimulated(disk, clock, random, options);
  await judge(log, promises);
  await log.offload();
  clock.advance(60_000);
  await log.offload();
  await log.checkpoint();
  await judge(log, promises);
  const referred = [...log.objects()].map(({ object }) => object).toSorted();
  assert.deepEqual(
    [...store.objects.keys()].toSorted(),
    referred,
    "the objects are the manifest's",
  );
  for (const { object, bytes } of log.objects()) {
    assert.equal(store.objects.get(object)?.length, bytes, object);
  }
  assert.deepEqual(log.damages(), []);
  await log.close();
  if (second === undefined) return;
  second.store.fault = () => undefined;
  const again = await openSimulated(second.disk, clock, random, {
    cold: coldOf(second.store, random),
  });
  await judge(again, promises);
  await again.close();
}

for (const [name, crash] of [
  ["power cut", (disk: SimDisk, random: Random) => disk.crash(random)],
  ["kill", (disk: SimDisk, random: Random) => disk.kill(random)],
] as const) {
  test(`no ${name} during offload loses a record or leaves an object (${STATES_WANTED} states)`, async () => {
    let judged = 0;
    let remote = 0;
    for (let seed = FIRST_SEED; judged < STATES_WANTED; seed++) {
      for (const [at, state] of (await collectStates(seed, crash)).entries()) {
        remote += state.store.objects.size;
        try {
          await judgeState(state, seed);
        } catch (error) {
          throw new Error(`seed ${seed}, state ${at}`, { cause: error });
        }
        judged++;
      }
    }
    assert.ok(remote > judged, "there were objects");
  });
}
