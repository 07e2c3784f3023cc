// Anomalies of the topics of a real log: what is read, kept over restarts, and shown.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createManualClock } from "@platform/kernel/time";
import { waitFor } from "@platform/testing/wait";
import { Activity, SAMPLE_MS } from "../../src/activity/activity.ts";
import { Anomalies } from "../../src/anomaly/anomalies.ts";
import type { Topic } from "../../src/topic/topics.ts";
import { startPulseHere } from "../fixture/pulse-here.ts";
import { asUser, startFeed } from "../fixture/tokens.ts";
import { makeFolder, openStore, type StoreFixture } from "../store/fixture.ts";

function watch({ store, state, topics, offsets }: StoreFixture) {
  const clock = createManualClock(Date.parse("2026-01-01T00:00:00Z"));
  const onError = (error: unknown) => assert.fail(String(error));
  const activity = new Activity({ topics, offsets, clock, onError });
  let id = 0;
  const idSource = { uuid: () => `id ${id++}` } as never;
  const anomalies = new Anomalies({ store, state, topics, activity, clock, idSource, onError });
  activity.sample();
  /** Publishes payloads and takes a sample. */
  const step = async (topic: Topic, payloads: readonly string[]): Promise<void> => {
    const [partition] = topic.stored.partitions;
    const records = payloads.map((text) => ({
      partition: partition!,
      record: { key: null, value: Buffer.from(text), headers: [], timestamp: clock.now() },
    }));
    await store.append(records);
    clock.advance(SAMPLE_MS);
    activity.sample();
    // The look at the messages comes after the sample.
    await new Promise((resolve) => setTimeout(resolve, 2));
  };
  return { anomalies, step };
}

test("messages of a topic are looked at after they are stored, and what is known survives a restart", async (t) => {
  const folder = makeFolder(t);
  const fixture = await openStore(folder);
  const topic = await fixture.topics.create("", "orders");
  const { anomalies, step } = watch(fixture);
  assert.equal(anomalies.find(topic), undefined);
  const usual = Array.from({ length: 20 }, (_, id) => JSON.stringify({ id }));
  for (let sample = 0; sample < 60; sample++) await step(topic, usual);
  assert.equal(anomalies.find(topic)!.describe().baseline.paths, 2);
  for (let sample = 0; sample < 3; sample++)
    await step(
      topic,
      usual.map(() => '{"no":1}'),
    );
  const { anomalies: found } = anomalies.find(topic)!.describe();
  assert.deepEqual(found.map(({ kind, path }) => `${kind} ${path}`).toSorted(), [
    "field_missing id",
    "field_new no",
  ]);
  assert.equal(anomalies.countActive().field_new, 1);
  assert.ok(!JSON.stringify(found).includes("19"), "no values");
  await anomalies.close();
  await fixture.store.close();

  const again = await openStore(folder);
  const known = watch(again).anomalies.find(again.topics.get("", "orders"))!;
  assert.deepEqual(known.describe().anomalies, found);
  assert.equal(known.describe().baseline.paths, 3);
  await again.topics.delete(again.topics.get("", "orders"));
  await again.store.close();
});

test("the list is for callers with a right for the topic; a topic without a sample is being learned", async (t) => {
  const feed = await startFeed(t);
  const pulse = await startPulseHere(t, feed.env);
  await pulse.post("/api/v1/publish", { topic: "a", payload: "x" }, asUser("publish"));
  const path = "/api/v1/topics/a/anomalies";
  const { status, body } = await pulse.get(path, { headers: asUser("subscribe") });
  assert.deepEqual(
    [status, body],
    [
      200,
      {
        topic: "a",
        learning: true,
        baseline: { rate: 0, rate_deviation: 0, bytes: 0, paths: 0 },
        anomalies: [],
      },
    ],
  );
  const ask = async (from: string, headers: Record<string, string>) =>
    (await pulse.get(from, { headers })).status;
  assert.equal(await ask("/api/v1/topics/none/anomalies", asUser("subscribe")), 404);
  assert.equal(await ask(path, asUser("subscribe", { tenant: "other" })), 404);
  assert.equal(await ask(`${path}?since=x`, asUser("subscribe")), 400);
  assert.equal(await ask(path, asUser("", { scope: "openid" })), 403);
  await waitFor(async () => {
    const metrics = await pulse.get("/metrics", { headers: asUser("", { scope: "*:*" }) });
    return String(metrics.body).includes('platform_pulse_anomalies_active{kind="not_json"} 0');
  });
});
