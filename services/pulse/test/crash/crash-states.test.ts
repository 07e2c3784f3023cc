// Power cuts under the whole broker: disk states that one can leave behind, each started again and judged.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createIdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import { openLog, type Log } from "@platform/log";
import { Random, SimDisk } from "@platform/log/simulation";
import { GuestPool } from "@platform/wasm";
import { openBroker, type Broker } from "../../src/broker.ts";
import { History, judge, type Moment } from "./history.ts";
import { targetBroker } from "./target.ts";
import { runLoad } from "./workload.ts";

/** States to judge; a soak sets more. */
const statesWanted = Number(process.env["PLATFORM_BROKER_CRASH_STATES"] ?? 24);
const firstSeed = Number(process.env["PLATFORM_CRASH_SEED"] ?? 1);
const statesPerRun = 12;
/** Everything delayed or mortal is due when a broker starts so much later; message ids are still remembered. */
const laterMs = 60_000;

const limits = {
  topics_per_tenant_max: 100,
  partitions_max: 10,
  partitions_default: 1,
  backpressure_limit: 0,
  publish_rate: 0,
  publish_capacity: 1,
  message_bytes_max: 100_000,
  message_ids_max: 10_000,
  producers_max: 1_000,
  max_deliveries: 10,
  nack_backoff_ms: 1_000,
  nack_backoff_max_ms: 60_000,
  followed_topics_per_user_max: 10_000,
  followed_topics_per_tenant_max: 10_000,
  followed_topics_max: 10_000,
};

interface Opened {
  broker: Broker;
  journal: Log;
  close: () => Promise<void>;
}

async function open(disk: SimDisk, aheadMs: number, guests: GuestPool): Promise<Opened> {
  const clock: Clock = {
    now: () => Date.now() + aheadMs,
    monotonicMs: () => performance.now(),
  };
  // Limits so small that a few hundred messages reach every part of the log.
  const journal = await openLog({
    disk,
    journalFileBytes: 20_000,
    checkpointBytes: 30_000,
    inPlaceBytesMin: 2_000,
    openFilesMax: 3,
  });
  const errors: unknown[] = [];
  const broker = await openBroker({
    journal,
    guests,
    limits,
    clock,
    idSource: createIdSource(),
    onTransform: () => undefined,
    onError: (error) => errors.push(error),
  });
  const close = async () => {
    await broker.close();
    await journal.close();
    assert.deepEqual(errors, []);
  };
  return { broker, journal, close };
}

interface State {
  disk: SimDisk;
  moment: Moment;
  at: number;
}

async function collectStates(seed: number, guests: GuestPool): Promise<State[]> {
  const random = new Random(seed);
  const disk = new SimDisk(random);
  const history = new History();
  const crashes = new Random(seed ^ 0x5eed);
  const states: State[] = [];
  const { broker, close } = await open(disk, 0, guests);
  disk.onOperation = () => {
    if (states.length >= statesPerRun || !crashes.chance(0.05)) return;
    states.push({ disk: disk.crash(crashes), moment: history.moment(), at: disk.operations });
  };
  await runLoad(targetBroker(broker), history, random, { lanes: 5, steps: 30, topicPrefix: "t" });
  // Deliveries and dead letters are interrupted as well.
  await sleep(70);
  disk.onOperation = () => undefined;
  await close();
  assert.ok(
    history.calls.every(({ placed }) => placed !== undefined),
    "no call failed",
  );
  return states;
}

async function judgeState({ disk, moment }: State, seed: number, guests: GuestPool): Promise<void> {
  const random = new Random(seed);
  // The power may go again while the broker starts and delivers.
  let second: SimDisk | undefined;
  disk.onOperation = () => {
    if (random.chance(0.05)) second = disk.crash(random);
  };
  const opened = await open(disk, laterMs, guests);
  assert.deepEqual(opened.journal.recovery.quarantined, []);
  await sleep(20);
  disk.onOperation = () => undefined;
  await judge(targetBroker(opened.broker), moment);
  await opened.close();
  if (second === undefined) return;
  const again = await open(second, laterMs, guests);
  await judge(targetBroker(again.broker), moment);
  await again.close();
}

test("no power cut loses, splits, reorders or repeats acknowledged calls", async (t) => {
  const guests = new GuestPool({ callMsMax: 100 });
  t.after(() => guests.close());
  let judged = 0;
  for (let seed = firstSeed; judged < statesWanted; seed++) {
    for (const state of await collectStates(seed, guests)) {
      try {
        await judgeState(state, seed, guests);
      } catch (error) {
        throw new Error(`seed ${seed}, crash at operation ${state.at}`, { cause: error });
      }
      judged++;
    }
  }
  t.diagnostic(`${judged} states judged`);
});
