import assert from "node:assert/strict";
import { test } from "node:test";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere } from "../fixture/pulse-here.ts";

test("a published message can be read back, with key, headers, priority and trace", async (t) => {
  const pulse = await startPulseHere(t);
  const { status, body } = await pulse.publish({
    topic: "orders.eu",
    payload: "héllo",
    key: "k",
    priority: 7,
    headers: { kind: "test", __proto__x: "1" },
  });
  assert.equal(status, 200);
  assert.equal(body.status, "success");
  assert.equal(body.processed_payload, "héllo");
  assert.deepEqual([body.partition, body.offset], [0, 0]);
  const tail = await pulse.get("/api/v1/tail?topic=orders.eu");
  const [message] = tail.body.messages;
  assert.equal(message.message_id, body.message_id);
  assert.deepEqual(
    [message.payload, message.key, message.priority, message.headers.kind],
    ["héllo", "k", 7, "test"],
  );
  const binary = Buffer.from([0, 255, 1]).toString("base64");
  await pulse.publish({ topic: "orders.eu", payload: binary, encoding: "base64" });
  const [, second] = (await pulse.get("/api/v1/tail?topic=orders.eu")).body.messages;
  assert.deepEqual([second.payload, second.encoding], [binary, "base64"]);
  const legacy = await pulse.post("/api/publish", { topic: "orders.eu", payload: "old path" });
  assert.equal(legacy.status, 200);
});

test("invalid input is rejected with a reason, and nothing is stored", async (t) => {
  const pulse = await startPulseHere(t);
  const cases: [Record<string, unknown>, number][] = [
    [{ payload: "no topic" }, 400],
    [{ topic: "a" }, 400],
    [{ topic: "a", payload: 5 }, 400],
    [{ topic: "other:a", payload: "x" }, 400],
    [{ topic: "__state", payload: "x" }, 400],
    [{ topic: "a.*", payload: "x" }, 400],
    [{ topic: "a", payload: "x", unknown: 1 }, 400],
    [{ topic: "a", payload: "x", delay_ms: -1 }, 400],
    [{ topic: "a", payload: "x", producer_id: "p" }, 400],
    [{ topic: "a", payload: "not base64!", encoding: "base64" }, 400],
    [{ topic: "a", payload: "x", headers: { "platform-message-id": "forged" } }, 400],
    [{ topic: "a", payload: "x".repeat(1024 * 1024 + 1) }, 413],
  ];
  for (const [message, status] of cases) {
    const answer = await pulse.publish(message);
    assert.equal(answer.status, status, JSON.stringify(message).slice(0, 80));
    assert.equal(typeof answer.body.error, "string");
    assert.equal(typeof answer.body.code, "string");
  }
  assert.equal((await pulse.get("/api/v1/topics")).body.count, 0);
});

test("publishing has the same answer on the direct route and in the router, which handles requests with a query", async (t) => {
  const pulse = await startPulseHere(t, { PLATFORM_PULSE_TOKEN: "operator-token" });
  const json = { "content-type": "application/json" };
  const good = JSON.stringify({ topic: "a", payload: "x" });
  const cases: [number, Record<string, string>, string][] = [
    [200, json, good],
    [400, json, JSON.stringify({ topic: "a.*", payload: "x" })],
    [400, json, JSON.stringify({ topic: "a", payload: 5 })],
    [400, json, "{"],
    [401, { ...json, authorization: "Bearer wrong" }, good],
    [413, json, JSON.stringify({ topic: "a", payload: "x".repeat(1024 * 1024 + 1) })],
    [413, json, " ".repeat(10 * 1024 * 1024 + 1)],
    [200, { "content-type": "application/x-www-form-urlencoded" }, good],
    [415, { "content-type": "text/plain" }, good],
  ];
  for (const [status, headers, body] of cases) {
    const ask = async (path: string) => {
      const answer = await pulse.get(path, { method: "POST", headers, body });
      // Fields that differ with each request.
      const { trace_id: _trace, message_id: _id, partition: _partition, ...rest } = answer.body;
      delete rest.offset;
      const fields = [...answer.headers].filter(([name]) => !/^(date|content-length)$/.test(name));
      return { status: answer.status, fields, rest };
    };
    const short = await ask("/api/v1/publish");
    assert.equal(short.status, status, body.slice(0, 60));
    assert.deepEqual(short, await ask("/api/v1/publish?way=router"));
  }
});

test("messages with the same key share a partition, selected by FNV-1a of the key", async (t) => {
  const pulse = await startPulseHere(t);
  await pulse.post("/api/v1/topics", { name: "p", partitions: 8 });
  // FNV-1a, 32 bits, of "a" is 0xe40c292c and of "foobar" 0xbf9cf968 (the published vectors).
  for (const [key, hash] of [
    ["a", 0xe40c292c],
    ["foobar", 0xbf9cf968],
  ] as const) {
    for (let round = 0; round < 2; round++) {
      const { body } = await pulse.publish({ topic: "p", payload: "x", key });
      assert.equal(body.partition, hash % 8, key);
    }
  }
});

test("a batch is stored completely or not at all, also over several topics", async (t) => {
  const pulse = await startPulseHere(t);
  const bad = await pulse.post("/api/v1/publish/batch", {
    messages: [
      { topic: "a", payload: "1" },
      { topic: "b:c", payload: "2" },
    ],
  });
  assert.equal(bad.status, 400);
  assert.equal(bad.body.index, 1);
  assert.equal((await pulse.get("/api/v1/topics")).body.count, 0);
  const { status, body } = await pulse.post("/api/v1/publish/batch", {
    messages: [
      { topic: "a", payload: "1" },
      { topic: "b", payload: "2" },
      { topic: "a", payload: "3" },
    ],
  });
  assert.equal(status, 200);
  assert.equal(body.count, 3);
  assert.deepEqual(
    body.results.map((result: { topic: string; offset: number }) => [result.topic, result.offset]),
    [
      ["a", 0],
      ["b", 0],
      ["a", 1],
    ],
  );
});

test("a message id and a sequence number are accepted once, also after a restart", async (t) => {
  const pulse = await startPulseHere(t);
  const byId = { topic: "a", payload: "1", message_id: "m" };
  const bySequence = { topic: "a", payload: "2", producer_id: "p", sequence_number: 5 };
  const first = await pulse.publish(byId);
  assert.equal(first.body.duplicate, undefined);
  assert.equal((await pulse.publish(bySequence)).body.duplicate, undefined);
  const again = await pulse.publish(byId);
  assert.deepEqual(
    [again.status, again.body.duplicate, again.body.offset],
    [200, true, first.body.offset],
  );
  assert.equal((await pulse.publish({ ...bySequence, sequence_number: 4 })).body.duplicate, true);
  await pulse.kill();
  await pulse.start();
  assert.equal((await pulse.publish(byId)).body.duplicate, true);
  assert.equal((await pulse.publish(bySequence)).body.duplicate, true);
  assert.equal(
    (await pulse.publish({ ...bySequence, sequence_number: 6 })).body.duplicate,
    undefined,
  );
  assert.equal((await pulse.publish({ ...byId, topic: "b" })).body.duplicate, undefined);
  assert.equal((await pulse.get("/api/v1/tail?topic=a")).body.count, 3);
});

test("concurrent messages with the same id store one message and answer both", async (t) => {
  const pulse = await startPulseHere(t);
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => pulse.publish({ topic: "a", payload: "x", message_id: "m" })),
  );
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.equal(answers.filter(({ body }) => body.duplicate !== true).length, 1);
  const inBatch = await pulse.post("/api/v1/publish/batch", {
    messages: [1, 2].map(() => ({ topic: "a", payload: "y", message_id: "n" })),
  });
  assert.deepEqual(
    inBatch.body.results.map(({ duplicate }: { duplicate?: boolean }) => duplicate),
    [undefined, true],
  );
  assert.equal((await pulse.get("/api/v1/tail?topic=a")).body.count, 2);
});

test("publishing over the rate limit gets 429 with a retry time", async (t) => {
  const pulse = await startPulseHere(t, {
    PLATFORM_PULSE_PUBLISH_RATE: "1",
    PLATFORM_PULSE_PUBLISH_CAPACITY: "5",
  });
  const answers = [];
  for (let at = 0; at < 7; at++) answers.push(await pulse.publish({ topic: "a", payload: "x" }));
  assert.deepEqual(
    answers.slice(0, 5).map(({ status }) => status),
    [200, 200, 200, 200, 200],
  );
  const refused = answers.find(({ status }) => status === 429)!;
  assert.equal(refused.headers.get("retry-after"), "1");
  assert.ok(refused.headers.has("ratelimit"));
});

test("a topic with too many unconsumed messages refuses more until some are consumed", async (t) => {
  const pulse = await startPulseHere(t, { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "10" });
  const publish = () => pulse.publish({ topic: "a", payload: "x" });
  for (let at = 0; at < 10; at++) assert.equal((await publish()).status, 200);
  const refused = await publish();
  assert.deepEqual([refused.status, refused.body.code], [503, "ERR_BACKPRESSURE"]);
  const known = { topic: "b", payload: "x", message_id: "known" };
  assert.equal((await pulse.publish(known)).status, 200);
  // The duplicate before it counts as a message of the batch.
  const batch = { messages: [known, { topic: "a", payload: "x" }] };
  const full = await pulse.post("/api/v1/publish/batch", batch);
  assert.deepEqual([full.status, full.body.code, full.body.index], [503, "ERR_BACKPRESSURE", 1]);
  await pulse.kill();
  await pulse.start();
  assert.equal((await publish()).status, 503);

  const reader = await EventReader.open(`${pulse.url}/api/v1/subscribe/a?from=earliest`);
  await reader.wait(10);
  assert.equal((await publish()).status, 200);
  reader.close();
});

test("a compacted topic rejects messages without a key: single, in a batch or delayed", async (t) => {
  const pulse = await startPulseHere(t);
  for (const policy of ["compact", "compact,delete"]) {
    const name = `latest-${policy.length}`;
    const topic = { name, config: { cleanup_policy: policy } };
    assert.equal((await pulse.post("/api/v1/topics", topic)).status, 201);
    const keyed = { topic: name, payload: "x", key: "k" };
    const keyless = { topic: name, payload: "x" };
    assert.equal((await pulse.publish(keyed)).status, 200);
    for (const message of [keyless, { ...keyless, delay_ms: 10 }]) {
      const { status, body } = await pulse.publish(message);
      assert.deepEqual([status, body.code], [400, "validation_failed"]);
      assert.match(body.detail, /compacted topic requires messages with keys/);
    }
    const batch = await pulse.post("/api/v1/publish/batch", { messages: [keyed, keyless] });
    assert.deepEqual([batch.status, batch.body.index], [400, 1]);
    assert.equal((await pulse.get(`/api/v1/tail?topic=${name}`)).body.count, 1);
  }
});

test("unimplemented endpoints return 501 and name the feature", async (t) => {
  const pulse = await startPulseHere(t);
  const { status, body } = await pulse.post("/api/v1/cdc", {});
  assert.deepEqual([status, body.code], [501, "not_available_yet"]);
});
