// Rates of topics and lag of groups, sampled from a real log.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createManualClock, type ManualClock } from "@platform/kernel/time";
import { Activity, SAMPLE_MS } from "../../src/activity/activity.ts";
import type { Topic } from "../../src/topic/topics.ts";
import { KafkaStage } from "../kafka/stage.ts";

let stage: KafkaStage;
before(async () => {
  stage = await KafkaStage.open({ sync: { kind: "os" } });
});
after(() => stage[Symbol.asyncDispose]());

type Limits = NonNullable<ConstructorParameters<typeof Activity>[0]["limits"]>;

function watch(limits: Limits = {}) {
  const { topics, offsets } = stage.broker;
  const clock: ManualClock = createManualClock(Date.parse("2026-01-01T00:00:00Z"));
  const onError = (error: unknown) => assert.fail(String(error));
  const activity = new Activity({ topics, offsets, clock, onError, limits });
  const sampleNext = (): void => {
    clock.advance(SAMPLE_MS);
    activity.sample();
  };
  return { activity, sampleNext, clock };
}

async function publish(topic: Topic, count: number, partition = 0): Promise<void> {
  const record = { key: null, value: Buffer.from("x"), headers: [], timestamp: Date.now() };
  const view = topic.stored.partitions[partition]!;
  await stage.broker.store.append(
    Array.from({ length: count }, () => ({ partition: view, record })),
  );
}

async function commit(group: string, topic: Topic, offset: number, partition = 0): Promise<void> {
  await stage.broker.offsets.commit("", group, [{ topic, partition, offset }]);
}

test("the rate of a topic is that between two samples, over all partitions", async () => {
  const topic = await stage.broker.topics.create("", "rate", { partitions: 2 });
  const { activity, sampleNext } = watch();
  sampleNext();
  assert.equal(activity.rateOf(topic), undefined, "one sample has no rate");
  await publish(topic, 30);
  await publish(topic, 20, 1);
  sampleNext();
  assert.equal(activity.rateOf(topic), 5);
  sampleNext();
  assert.equal(activity.rateOf(topic), 0);
});

test("lag has its samples of ten minutes and the time since when it lasts", async () => {
  const topic = await stage.broker.topics.create("", "lag", { partitions: 2 });
  await publish(topic, 10);
  await publish(topic, 5, 1);
  await commit("slow", topic, 4);
  await commit("slow", topic, 5, 1);
  const { activity, sampleNext, clock } = watch();
  sampleNext();
  const since = clock.now();
  sampleNext();
  const only = () => [...activity.lagOf("", "slow")];
  const [series] = only();
  assert.equal(series!.topic, topic);
  assert.deepEqual(series!.samples, [
    { atMs: since, lag: 6 },
    { atMs: since + SAMPLE_MS, lag: 6 },
  ]);
  assert.equal(series!.laggingSinceMs, since);
  assert.deepEqual(activity.worstLag, { messages: 6, seconds: SAMPLE_MS / 1_000 });
  await commit("slow", topic, 10);
  sampleNext();
  assert.equal(only()[0]!.laggingSinceMs, undefined);
  assert.equal(only()[0]!.samples.at(-1)!.lag, 0);
  assert.deepEqual(activity.worstLag, { messages: 0, seconds: 0 });
  await publish(topic, 1);
  for (let at = 0; at < 60; at++) sampleNext();
  const [later] = only();
  assert.equal(later!.samples.length, 60);
  assert.equal(later!.laggingSinceMs, since + 3 * SAMPLE_MS, "known although its sample is gone");
  await stage.broker.offsets.deleteGroup("", "slow");
  sampleNext();
  assert.deepEqual(only(), []);
});

test("topics, offsets and series are bounded", async () => {
  const topic = await stage.broker.topics.create("", "bounded", { partitions: 3 });
  for (const group of ["one", "two", "three"]) {
    for (const partition of [0, 1, 2]) await commit(group, topic, 0, partition);
  }
  const sampled = (limits: Limits): number => {
    const { activity, sampleNext } = watch(limits);
    sampleNext();
    sampleNext();
    return ["one", "two", "three"].filter((name) => [...activity.lagOf("", name)].length > 0)
      .length;
  };
  assert.equal(sampled({}), 3);
  assert.equal(sampled({ seriesMax: 2 }), 2);
  assert.equal(sampled({ offsetsMax: 4 }), 2);
  const { activity, sampleNext } = watch({ topicsMax: 1 });
  sampleNext();
  sampleNext();
  const rates = [...stage.broker.topics.all()].map((each) => activity.rateOf(each));
  assert.equal(rates.filter((rate) => rate !== undefined).length, 1);
});
