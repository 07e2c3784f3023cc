// Power cuts: hundreds of possible disk states, each recovered and checked.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SyncMode } from "../../src/index.ts";
import { History, judge } from "../simulation/history.ts";
import { Random } from "../simulation/random.ts";
import { readAll } from "../simulation/read-all.ts";
import { SimClock, SimDisk } from "../simulation/sim-disk.ts";
import { openSimulated, runWorkload } from "../simulation/workload.ts";

/** Number of states to check; soak tests set more. */
const STATES_WANTED = Number(process.env["PLATFORM_CRASH_STATES"] ?? 200);
const FIRST_SEED = Number(process.env["PLATFORM_CRASH_SEED"] ?? 1);

interface State {
  disk: SimDisk;
  moment: ReturnType<History["moment"]>;
  at: number;
}

/** Runs a workload on a fresh disk and collects the states after crashes at random moments. */
async function collectStates(
  seed: number,
  take: (disk: SimDisk, random: Random) => SimDisk,
  sync: SyncMode = { kind: "group" },
): Promise<State[]> {
  const random = new Random(seed);
  const disk = new SimDisk(random);
  const clock = new SimClock();
  const history = new History();
  const crashes = new Random(seed ^ 0x5eed);
  const states: State[] = [];
  disk.onOperation = () => {
    if (!crashes.chance(0.08) || states.length >= 30) return;
    states.push({ disk: take(disk, crashes), moment: history.moment(), at: disk.operations });
  };
  const log = await openSimulated(disk, clock, random, { sync });
  await runWorkload(log, random, clock, history, 60);
  disk.onOperation = () => undefined;
  await log.close();
  states.push({ disk: take(disk, crashes), moment: history.moment(), at: disk.operations });
  return states;
}

async function judgeState(state: State, seed: number): Promise<void> {
  const random = new Random(seed);
  const clock = new SimClock();
  // A second power cut during the recovery.
  let second: SimDisk | undefined;
  state.disk.onOperation = () => {
    if (random.chance(0.15)) second = state.disk.crash(random);
  };
  const log = await openSimulated(state.disk, clock, random);
  state.disk.onOperation = () => undefined;
  await judge(log, state.moment);
  if (second !== undefined) {
    const recovered = await openSimulated(second, clock, random);
    await judge(recovered, state.moment);
    await recovered.close();
  }
  // Appends after a recovery must survive the next crash as well.
  const before = new Map<string, string[]>();
  for (const topic of log.topics()) {
    for (const partition of topic.partitions) {
      const values = (await readAll(log, partition)).map((record) => record.value!.toString());
      before.set(`${topic.name}/${partition.index}`, values);
    }
  }
  const history = new History();
  await runWorkload(log, random, clock, history, 8);
  const again = await openSimulated(state.disk.crash(random), clock, random);
  for (const topic of again.topics()) {
    if (topic.name === "beta") continue;
    for (const partition of topic.partitions) {
      const values = (await readAll(again, partition)).map((record) => record.value!.toString());
      const had = before.get(`${topic.name}/${partition.index}`) ?? [];
      assert.deepEqual(values.slice(0, had.length), had, "what was recovered stays");
    }
  }
  for (const entry of history.entries) {
    if (entry.outcome !== "acknowledged") continue;
    for (const [index, part] of entry.parts.entries()) {
      const topic = again.topic(part.topic);
      if (topic === undefined || part.topic === "beta") continue;
      const records = await readAll(again, topic.partitions[part.partition]!);
      const record = records.find((candidate) => candidate.offset === entry.offsets[index]);
      assert.ok(record?.value?.toString().startsWith(`${part.values[0]!} `), "acknowledged later");
    }
  }
  await again.close();
  await log.close();
}

test(`no power cut loses, splits or reorders acknowledged entries (${STATES_WANTED} states)`, async () => {
  let judged = 0;
  for (let seed = FIRST_SEED; judged < STATES_WANTED; seed++) {
    for (const state of await collectStates(seed, (disk, random) => disk.crash(random))) {
      try {
        await judgeState(state, seed);
      } catch (error) {
        throw new Error(`seed ${seed}, crash at operation ${state.at}`, { cause: error });
      }
      judged++;
    }
  }
  assert.ok(judged >= STATES_WANTED);
});

test("a power cut in the lazy sync modes loses at most the end of the log and splits no entry", async () => {
  for (const sync of [{ kind: "os" }, { kind: "interval", ms: 5 }] satisfies SyncMode[]) {
    let judged = 0;
    for (let seed = FIRST_SEED; judged < STATES_WANTED / 4; seed++) {
      for (const state of await collectStates(seed, (disk, random) => disk.crash(random), sync)) {
        try {
          const log = await openSimulated(state.disk, new SimClock(), new Random(seed));
          await judge(log, promiseNothing(state.moment));
          await log.close();
        } catch (error) {
          throw new Error(`${sync.kind}, seed ${seed}, operation ${state.at}`, { cause: error });
        }
        judged++;
      }
    }
  }
});

// Acknowledged entries may be missing here, so only completeness, order and integrity are checked.
function promiseNothing(moment: State["moment"]): State["moment"] {
  const entries = moment.entries.map(({ entry }) => ({ entry, outcome: "waiting" as const }));
  return { ...moment, entries, topics: [], deleted: [], trims: new Map() };
}

test("a killed process loses nothing in any sync mode, since the page cache survives", async () => {
  for (const sync of [{ kind: "os" }, { kind: "interval", ms: 5 }] satisfies SyncMode[]) {
    for (let seed = 100; seed < 104; seed++) {
      for (const state of await collectStates(seed, (disk, random) => disk.kill(random), sync)) {
        try {
          await judgeState(state, seed);
        } catch (error) {
          throw new Error(`${sync.kind}, seed ${seed}, operation ${state.at}`, { cause: error });
        }
      }
    }
  }
});
