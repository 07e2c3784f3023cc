import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@platform/testing/wait";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";

const readDeadLetters = (pulse: PulseHere, topic: string, count: number) =>
  waitFor(async () => {
    const { body } = await pulse.get(`/api/v1/topics/${topic}/dlq`);
    return body.total >= count ? body : undefined;
  });

test("delayed messages are delivered when due, never earlier, in order of due times", async (t) => {
  const pulse = await startPulseHere(t);
  const reader = await EventReader.open(`${pulse.url}/api/v1/subscribe/a`);
  const published = new Map<string, number>();
  for (const [payload, delay] of [
    ["late", 900],
    ["soon", 300],
    ["now", 0],
  ] as const) {
    const { body } = await pulse.publish({ topic: "a", payload, delay_ms: delay });
    published.set(payload, body.scheduled_for ?? 0);
  }
  const arrivals: [string, number][] = [];
  for (let count = 1; count <= 3; count++) {
    const events = await reader.wait(count);
    arrivals.push([String(events[count - 1]!.data["payload"]), Date.now()]);
  }
  assert.deepEqual(
    arrivals.map(([payload]) => payload),
    ["now", "soon", "late"],
  );
  for (const [payload, at] of arrivals) {
    const due = published.get(payload)!;
    assert.ok(at >= due, `${payload} came ${due - at} ms early`);
  }
  reader.close();
});

test("messages published out of order are delivered in order of due times, each once", async (t) => {
  const pulse = await startPulseHere(t);
  const count = 900;
  const messages = Array.from({ length: count }, (_, at) => ({
    topic: "a",
    payload: String(at),
    // 7 has no divisor in common with the count.
    delay_ms: 500 + ((at * 7) % count),
  }));
  const { status, body: published } = await pulse.post("/api/v1/publish/batch", { messages });
  assert.equal(status, 200);
  const tail = await waitFor(async () => {
    const { body } = await pulse.get("/api/v1/tail?topic=a&n=1000");
    return body.count >= count ? body.messages : undefined;
  });
  const places: number[] = tail.map(({ payload }: { payload: string }) => Number(payload));
  assert.equal(new Set(places).size, count);
  // Hundredths of a second: within one, messages come in the order in which they were published.
  const slots = places.map((at) => Math.ceil(published.results[at].scheduled_for / 10));
  assert.deepEqual(
    slots,
    slots.toSorted((one, other) => one - other),
  );
});

test("delayed messages survive kill -9, also if they became due meanwhile, and are delivered once", async (t) => {
  const pulse = await startPulseHere(t);
  const messages = Array.from({ length: 40 }, (_, at) => ({
    topic: "a",
    payload: `m${at}`,
    delay_ms: 200 + at * 60,
  }));
  assert.equal((await pulse.post("/api/v1/publish/batch", { messages })).status, 200);
  await sleep(900);
  await pulse.kill();
  await sleep(300);
  await pulse.start();
  const { messages: tail } = await waitFor(async () => {
    const { body } = await pulse.get("/api/v1/tail?topic=a&n=100");
    return body.count >= 40 ? body : undefined;
  });
  await sleep(200);
  assert.deepEqual(
    tail.map(({ payload }: { payload: string }) => payload),
    messages.map(({ payload }) => payload),
  );
  assert.equal((await pulse.get("/api/v1/tail?topic=a&n=100")).body.count, 40);
});

test("an unconsumed expired message becomes one dead letter, a consumed one does not", async (t) => {
  const pulse = await startPulseHere(t);
  await pulse.publish({ topic: "alone", payload: "dies", ttl_ms: 150, key: "k" });
  const { messages, total, dlq_topic } = await readDeadLetters(pulse, "alone", 1);
  assert.deepEqual([total, dlq_topic], [1, "alone.dlq"]);
  const [letter] = messages;
  assert.equal(letter.original_payload, "dies");
  assert.equal(letter.source_topic, "alone");
  assert.equal(letter.failure_reason, "message TTL expired");
  assert.equal(letter.retry_count, 0);
  assert.ok(Math.abs(letter.timestamp - Date.now() / 1000) < 30);

  const reader = await EventReader.open(`${pulse.url}/api/v1/subscribe/read`);
  await pulse.publish({ topic: "read", payload: "lives", ttl_ms: 150 });
  await reader.wait(1);
  const group = await EventReader.open(`${pulse.url}/api/v1/subscribe/held?group=g&ack=manual`);
  await pulse.publish({ topic: "held", payload: "not acknowledged", ttl_ms: 150 });
  await group.wait(1);
  await readDeadLetters(pulse, "held", 1);
  await sleep(200);
  assert.equal((await pulse.get("/api/v1/topics/read/dlq")).body.total, 0);
  const lag = (await pulse.get("/api/v1/consumers/lag?group=g")).body.groups[0];
  assert.equal(lag.lag, 0, "the source is acknowledged with the dead letter");
  reader.close();
  group.close();
});

test("expiry survives kill -9: remaining messages expire, expired ones do not expire again", async (t) => {
  const pulse = await startPulseHere(t);
  await pulse.publish({ topic: "a", payload: "long", ttl_ms: 2_500 });
  await pulse.publish({ topic: "a", payload: "short", ttl_ms: 100 });
  await readDeadLetters(pulse, "a", 1);
  await pulse.kill();
  await pulse.start();
  const { messages } = await readDeadLetters(pulse, "a", 2);
  await sleep(200);
  assert.deepEqual(
    messages.map(({ original_payload }: { original_payload: string }) => original_payload),
    ["short", "long"],
  );
  assert.equal((await pulse.get("/api/v1/topics/a/dlq")).body.total, 2);
});

test("a requeued dead letter keeps its id, has one more retry and the patched payload, and leaves the queue for good", async (t) => {
  const pulse = await startPulseHere(t);
  await pulse.post("/api/v1/topics/a/dlq", { dlq_topic: "graveyard" });
  for (const message_id of ["m1", "m2", "m3"]) {
    await pulse.publish({ topic: "a", payload: message_id, ttl_ms: 50, message_id, priority: 3 });
  }
  const { messages, dlq_topic } = await readDeadLetters(pulse, "a", 3);
  assert.equal(dlq_topic, "graveyard");
  const ids = messages.map(({ message_id }: { message_id: string }) => message_id);
  const requeue = (body: unknown) => pulse.post("/api/v1/topics/a/dlq/requeue", body);
  const { status, body } = await requeue({ message_id: ids[0], payload: "patched" });
  assert.deepEqual([status, body.message_id, body.processed_payload], [200, ids[0], "patched"]);
  assert.equal((await requeue({ message_id: ids[0] })).status, 404);
  assert.equal((await requeue({ message_id: "unknown" })).status, 404);
  const twice = await Promise.all([
    requeue({ message_id: ids[1] }),
    requeue({ message_id: ids[1] }),
  ]);
  const statuses = twice.map(({ status }) => status).sort((a, b) => a - b);
  assert.equal(statuses[0], 200);
  assert.ok(statuses[1] === 404 || statuses[1] === 409, String(statuses[1]));
  const summary = (await pulse.get("/api/v1/topics/a/dlq/summary")).body;
  assert.deepEqual([summary.total, summary.clusters[0].count], [1, 1]);
  assert.deepEqual(summary.clusters[0].sample_ids, [ids[2]]);
  await pulse.kill();
  await pulse.start();
  const left = (await pulse.get("/api/v1/topics/a/dlq")).body;
  assert.deepEqual(
    left.messages.map((letter: { message_id: string }) => letter.message_id),
    [ids[2]],
  );
  const tail = (await pulse.get("/api/v1/tail?topic=a&n=10")).body.messages;
  const back = tail.find((message: { payload: string }) => message.payload === "patched");
  assert.deepEqual([back.message_id, back.retry_count, back.priority], [ids[0], 1, 3]);
});
