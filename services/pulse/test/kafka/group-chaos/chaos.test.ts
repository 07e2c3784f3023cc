// Members over TCP join, leave, die and stall at random while messages come in and the broker restarts.
// PLATFORM_KAFKA_CHAOS_SECONDS=600 makes it long, PLATFORM_KAFKA_CHAOS_SEED repeats the choices of a run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeBatch } from "@platform/log/batch";
import { initProducerId, produce } from "../../../src/kafka/protocol/messages/index.ts";
import { KafkaClient } from "../client.ts";
import { KafkaStage } from "../stage.ts";
import { History } from "./history.ts";
import { ChaosMember, type Membership } from "./member.ts";

const seconds = Number(process.env["PLATFORM_KAFKA_CHAOS_SECONDS"] ?? 6);
const seed = Number(process.env["PLATFORM_KAFKA_CHAOS_SEED"] ?? Date.now() % 1_000_000);
const partitions = 8;
const membersMax = 7;
/** The group comes to rest, and goes on, within this time: many sessions and rebalances long. */
const patienceMs = 90_000;
const restartEveryMs = 60_000;

test(
  `${seconds} s of members that join, leave, die and stall: nothing is lost, the group never sticks`,
  { timeout: seconds * 1_000 + 3 * patienceMs },
  async (t) => {
    const random = createRandom(seed);
    const groupLimits = {
      sessionTimeoutMsMin: 500,
      rebalanceTimeoutMsMin: 500,
      initialDelayMs: 20,
    };
    await using stage = await KafkaStage.open({ groupLimits });
    const topic = "work";
    await stage.broker.topics.create("", topic, { partitions });
    const history = new History(partitions);
    const membership: Membership = {
      port: stage.port,
      topic,
      group: "workers",
      partitions,
      sessionTimeoutMs: 1_500,
      rebalanceTimeoutMs: 2_000,
      heartbeatMs: 200,
      history,
    };
    const writer = new Writer(stage.port, topic);
    const counts = { joined: 0, left: 0, died: 0, stalled: 0, restarts: 0 };
    let members: ChaosMember[] = [];
    const ended: Promise<void>[] = [];
    let names = 0;
    const come = () => {
      const number = ++names;
      // Every third has a name of its own that survives it (a static member).
      const instanceId = number % 3 === 0 ? `static-${random(4)}` : null;
      const member = new ChaosMember(`m${number}`, instanceId, membership);
      members.push(member);
      ended.push(member.ended);
      counts.joined++;
    };
    come();
    const endMs = performance.now() + seconds * 1_000;
    let restartAtMs = performance.now() + Math.min(restartEveryMs, seconds * 500);
    let progressAtMs = performance.now();
    let progress = 0;
    while (performance.now() < endMs) {
      await sleep(50 + random(400));
      members = members.filter((member) => member.isRunning);
      const member = members[random(members.length)];
      const choice = random(10);
      if (member === undefined || (choice < 4 && members.length < membersMax)) come();
      else if (choice < 5) counts.left += run(() => member.leave());
      else if (choice < 6) counts.died += run(() => member.die());
      else if (choice < 8) counts.stalled += run(() => member.stall(random(4_000)));
      if (performance.now() >= restartAtMs) {
        restartAtMs += restartEveryMs;
        counts.restarts++;
        await stage.restart();
      }
      if (history.committedTotal > progress) {
        progress = history.committedTotal;
        progressAtMs = performance.now();
      }
      assert.ok(performance.now() - progressAtMs < patienceMs, "the group is stuck");
    }
    const ends = await writer.stop();
    while (members.filter((member) => member.isRunning).length < 2) come();
    const deadlineMs = performance.now() + patienceMs;
    while (!history.isDone(ends) && performance.now() < deadlineMs) await sleep(50);
    const summary = { seed, ...counts, ...history.count(), commits: history.commits };
    t.diagnostic(
      JSON.stringify({
        ...summary,
        rebalances: history.rebalances,
        refusedCommits: history.refusedCommits,
        violations: history.violations.length,
      }),
    );
    const state = stage.broker.groups.describe(":workers")?.state;
    for (const member of members) member.die();
    await Promise.all(ended);
    assert.deepEqual(history.violations, []);
    const offsets = JSON.stringify({ ends, committed: history.readCommitted() });
    assert.ok(history.isDone(ends), `not all was read; the group is ${state}: ${offsets}`);
    assert.equal(
      history.count().messages,
      ends.reduce((sum, end) => sum + end, 0),
    );
  },
);

function run(action: () => void): 1 {
  action();
  return 1;
}

/** Small, repeatable random numbers (mulberry32): whole, from 0 up to but not including `below`. */
function createRandom(start: number): (below: number) => number {
  let state = start;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * below);
  };
}

/** Writes `<partition>:<offset>` to all partitions as an idempotent producer, again where it got no answer. */
class Writer {
  readonly #port: number;
  readonly #topic: string;
  readonly #ends = Array.from({ length: partitions }, () => 0);
  readonly #done: Promise<void>;
  #isStopping = false;

  constructor(port: number, topic: string) {
    this.#port = port;
    this.#topic = topic;
    this.#done = this.#run();
  }

  /** Finishes the round that is under way; gives how many messages each partition has. */
  async stop(): Promise<number[]> {
    this.#isStopping = true;
    await this.#done;
    return this.#ends;
  }

  async #run(): Promise<void> {
    let producerId: number | undefined;
    let client: KafkaClient | undefined;
    while (!this.#isStopping) {
      try {
        client ??= await KafkaClient.connect(this.#port);
        producerId ??= (
          await client.ask(initProducerId, 4, { transactionalId: null, transactionTimeoutMs: 0 })
        ).producerId;
        await this.#write(client, producerId);
        await sleep(20);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        client?.socket.destroy();
        client = undefined;
        await sleep(50);
      }
    }
    client?.socket.destroy();
  }

  async #write(client: KafkaClient, producerId: number): Promise<void> {
    const perRound = 3;
    const body = {
      acks: -1,
      timeoutMs: 1_000,
      topics: [
        {
          name: this.#topic,
          partitions: this.#ends.map((end, index) => {
            const records = Array.from({ length: perRound }, (_, at) => ({
              key: null,
              value: Buffer.from(`${index}:${end + at}`),
              headers: [],
              timestamp: 1,
            }));
            const fields = { producerId, producerEpoch: 0, baseSequence: end };
            return { index, records: [encodeBatch(records, fields)] };
          }),
        },
      ],
    };
    const { topics } = await client.ask(produce, 9, body);
    for (const { index, errorCode, baseOffset } of topics[0]!.partitions) {
      assert.equal(errorCode, 0);
      assert.equal(baseOffset, this.#ends[index], "an answer that was lost made a duplicate");
      this.#ends[index]! += perRound;
    }
  }
}
