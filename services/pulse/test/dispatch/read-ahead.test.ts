// Reads for subscribers that take nothing: bounded by the budget for all of them together, and others are served.
import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createIdSource } from "@platform/kernel/ids";
import { Outflow, OutgoingBudget } from "@platform/kernel/sockets";
import { systemClock } from "@platform/kernel/time";
import { openLog } from "@platform/log";
import { Random, SimDisk } from "@platform/log/simulation";
import { GuestPool } from "@platform/wasm";
import { openBroker, type Broker } from "../../src/broker.ts";
import { ReadAhead } from "../../src/dispatch/read-ahead.ts";
import type { Sink } from "../../src/dispatch/subscription.ts";

const MIB = 1_048_576;
const BUDGET_BYTES = 8 * MIB;
const MESSAGE_BYTES = 100_000;
const MESSAGES = 60;
/** One read, with what is stored beside the payloads. */
const PIECE_BYTES = 512 * 1024;
const SLOW = 20;

const limits = {
  topics_per_tenant_max: 10,
  partitions_max: 10,
  partitions_default: 1,
  backpressure_limit: 0,
  publish_rate: 0,
  publish_capacity: 1,
  message_bytes_max: MIB,
  message_ids_max: 1_000,
  producers_max: 1_000,
  max_deliveries: 10,
  nack_backoff_ms: 1_000,
  nack_backoff_max_ms: 60_000,
  followed_topics_per_user_max: 10_000,
  followed_topics_per_tenant_max: 10_000,
  followed_topics_max: 10_000,
};

interface Stage {
  broker: Broker;
  budget: OutgoingBudget;
  readBytes: () => number;
  createSink: (canSend: () => boolean, onMessage: () => void) => Sink;
}

async function openStage(t: TestContext): Promise<Stage> {
  const journal = await openLog({ disk: new SimDisk(new Random(1)) });
  const guests = new GuestPool();
  const broker = await openBroker({
    journal,
    guests,
    limits,
    clock: systemClock,
    idSource: createIdSource(),
    onTransform: () => undefined,
    onError: () => undefined,
  });
  t.after(async () => {
    await broker.close();
    await journal.close();
    await guests.close();
  });
  for (let at = 0; at < MESSAGES; at++) {
    const input = { topic: "big", payload: Buffer.alloc(MESSAGE_BYTES, "a") };
    await broker.publisher.publish("", [input], { isRated: false });
  }
  let readBytes = 0;
  const read = journal.read.bind(journal);
  journal.read = async (...given) => {
    const result = await read(...given);
    readBytes += result.bytes;
    return result;
  };
  const budget = new OutgoingBudget(BUDGET_BYTES);
  const bounds = { writeStallMs: 0, answerPace: { bytesMin: 0, windowMs: 1_000 } };
  const createSink: Stage["createSink"] = (canSend, onMessage) => ({
    canSend,
    readAhead: new ReadAhead(new Outflow(new Socket(), budget, bounds, () => undefined)),
    send: (_message, done) => {
      onMessage();
      setImmediate(done);
    },
    end: () => undefined,
  });
  return { broker, budget, readBytes: () => readBytes, createSink };
}

async function checkOthersAreServed(stage: Stage): Promise<void> {
  const { broker, budget, readBytes, createSink } = stage;
  const account = broker.subscriptions.followed.account("", "others");
  await sleep(200);
  const bytes = readBytes();
  assert.ok(bytes > 0 && bytes <= BUDGET_BYTES + PIECE_BYTES, `${bytes} bytes were read ahead`);
  assert.ok(!budget.isFull);
  const all = Promise.withResolvers<void>();
  let count = 0;
  const sink = createSink(
    () => true,
    () => {
      if (++count === MESSAGES + 1) all.resolve();
    },
  );
  broker.subscriptions.open(broker.topics.get("", "big"), () => 0, sink, account);
  const input = { topic: "big", payload: Buffer.from("one more") };
  await broker.publisher.publish("", [input], { isRated: false });
  await all.promise;
}

test(
  "subscribers that take nothing share half of the budget, and another gets everything",
  {
    timeout: 20_000,
  },
  async (t) => {
    const stage = await openStage(t);
    const { broker, budget, createSink } = stage;
    const account = broker.subscriptions.followed.account("", "slow");
    const topic = broker.topics.get("", "big");
    let isOpen = false;
    const taken: number[] = [];
    const slow = Array.from({ length: SLOW }, (_, at) => {
      const sink = createSink(
        () => isOpen,
        () => (taken[at] = (taken[at] ?? 0) + 1),
      );
      return broker.subscriptions.open(topic, () => 0, sink, account);
    });
    await checkOthersAreServed(stage);
    assert.ok(budget.heldBytes <= BUDGET_BYTES / 2 + PIECE_BYTES, `${budget.heldBytes} are held`);
    // Once they take something, they get everything, too.
    isOpen = true;
    while (!slow.every((_, at) => taken[at] === MESSAGES + 1)) {
      for (const { subscription } of slow) subscription.pump();
      await sleep(5);
    }
    for (const one of slow) one.close();
    await sleep(10);
    assert.equal(budget.heldBytes, 0);
  },
);

test(
  "groups whose members acknowledge nothing share the budget, and another subscriber gets everything",
  {
    timeout: 20_000,
  },
  async (t) => {
    const stage = await openStage(t);
    const { broker, budget, createSink } = stage;
    const topic = broker.topics.get("", "big");
    const members = [];
    for (let at = 0; at < SLOW; at++) {
      const group = await broker.groups.ensure("", `group-${at}`, topic, () => 0);
      const sink = createSink(
        () => true,
        () => undefined,
      );
      members.push(group.join(sink, { isManual: true, prefetch: 1, ackWaitMs: 60_000 }));
    }
    await checkOthersAreServed(stage);
    for (const member of members) member.leave();
    await sleep(10);
    assert.equal(budget.heldBytes, 0);
  },
);
