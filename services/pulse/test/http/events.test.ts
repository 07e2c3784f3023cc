// The list of events over topics: order, pages, filters, rights and cursors.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { asUser, startFeed } from "../fixture/tokens.ts";

type Query = Record<string, string | number>;

function list(pulse: PulseHere, query: Query = {}, headers: Record<string, string> = {}) {
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]) => [name, String(value)]),
  );
  return pulse.get(`/api/v1/events/?${search.toString()}`, { headers });
}

/** Payloads of all pages. */
async function listAll(pulse: PulseHere, query: Query): Promise<string[]> {
  const payloads: string[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const { status, body } = await list(pulse, cursor === undefined ? query : { ...query, cursor });
    assert.equal(status, 200, JSON.stringify(body));
    for (const { payload } of body.events) payloads.push(payload);
    cursor = body.next_cursor as string | null;
  }
  return payloads;
}

test("events of all topics come in the order in which they were published, page by page", async (t) => {
  const pulse = await startPulseHere(t);
  await pulse.post("/api/v1/topics", { name: "orders", partitions: 3 });
  const expected: string[] = [];
  for (let number = 0; number < 30; number++) {
    const payload = `event ${number}`;
    expected.push(payload);
    const topic = ["orders", "users.eu", "users.us"][number % 3]!;
    await pulse.publish({ topic, payload, key: `k${number % 5}` });
    // Events of one millisecond are in the order of their topics.
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  assert.deepEqual(await listAll(pulse, {}), expected);
  assert.deepEqual(await listAll(pulse, { limit: 7 }), expected);
  const history = expected.filter((_, number) => number % 5 === 2);
  assert.deepEqual(await listAll(pulse, { key: "k2", limit: 2 }), history);
  const users = expected.filter((_, number) => number % 3 !== 0);
  assert.deepEqual(await listAll(pulse, { topic: "users.*" }), users);
  const [first] = (await list(pulse, { topic: "users.eu" })).body.events;
  assert.deepEqual(
    [first.topic, first.partition, first.offset, first.key, first.type, first.payload],
    ["users.eu", 0, 0, "k1", null, "event 1"],
  );
  assert.equal(typeof first.message_id, "string");

  const { timestamp } = (await list(pulse)).body.events[10];
  assert.deepEqual(await listAll(pulse, { from: timestamp }), expected.slice(10));
  assert.deepEqual(await listAll(pulse, { to: timestamp }), expected.slice(0, 10));
  const text = new Date(timestamp).toISOString();
  assert.deepEqual(await listAll(pulse, { from: text, to: timestamp + 1 }), [expected[10]]);
});

test("a topic with an index of keys has filters beside its closed segments, and the same history", async (t) => {
  const pulse = await startPulseHere(t);
  const config = { key_index: true, segment_bytes: 200_000 };
  const made = await pulse.post("/api/v1/topics", { name: "ledger", config });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { body: topic } = await pulse.get("/api/v1/topics/ledger");
  assert.equal(topic.config.key_index, true);
  const expected: string[] = [];
  for (let number = 0; number < 12; number++) {
    const payload = `${number} `.padEnd(150_000, "x");
    if (number % 4 === 1) expected.push(payload);
    await pulse.publish({ topic: "ledger", payload, key: `k${number % 4}` });
  }
  await waitFor(() => {
    const names = readdirSync(join(pulse.folder, "queue.wal"), { recursive: true });
    return names.filter((name) => String(name).endsWith(".keys")).length >= 3;
  });
  assert.deepEqual(await listAll(pulse, { key: "k1" }), expected);
  assert.deepEqual(await listAll(pulse, { key: "k9" }), []);
  const changed = await pulse.post("/api/v1/topics/retention", {
    topic: "ledger",
    key_index: false,
  });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  assert.deepEqual(await listAll(pulse, { key: "k1" }), expected);
});

test("a list ends where the topics ended at its first page", async (t) => {
  const pulse = await startPulseHere(t);
  for (const payload of ["1", "2", "3"]) await pulse.publish({ topic: "a", payload });
  const { body } = await list(pulse, { limit: 2 });
  await pulse.publish({ topic: "a", payload: "later" });
  await pulse.publish({ topic: "b", payload: "later" });
  const rest = await list(pulse, { limit: 2, cursor: body.next_cursor });
  assert.deepEqual(
    rest.body.events.map(({ payload }: { payload: string }) => payload),
    ["3"],
  );
  assert.equal(rest.body.next_cursor, null);
});

test("the type is that of a header, or else of a JSON payload", async (t) => {
  const pulse = await startPulseHere(t);
  const json = (content: unknown) => JSON.stringify(content);
  const messages: [payload: string, headers: Record<string, string>, type: string | null][] = [
    [json({ type: "paid" }), { ce_type: "order.paid" }, "order.paid"],
    ["text", { "CE-Type": "order.paid" }, "order.paid"],
    ["text", { type: "plain" }, "plain"],
    [json({ type: "paid" }), {}, "paid"],
    [json({ type: 5 }), {}, null],
    [json([{ type: "paid" }]), {}, null],
    [json({ inner: { type: "paid" } }), {}, null],
    ['{"type":"paid"', {}, null],
    [json({ ["__proto__"]: 1, kind: "x" }), {}, null],
  ];
  for (const [payload, headers] of messages) await pulse.publish({ topic: "a", payload, headers });
  const { body } = await list(pulse);
  assert.deepEqual(
    body.events.map(({ type }: { type: string | null }) => type),
    messages.map(([, , type]) => type),
  );
  assert.deepEqual(await listAll(pulse, { type: "order.paid" }), [messages[0]![0], "text"]);
  assert.deepEqual(await listAll(pulse, { type: "paid" }), [messages[3]![0]]);
});

test("dead letters are listed by the name of their topic only", async (t) => {
  const pulse = await startPulseHere(t);
  await pulse.publish({ topic: "a", payload: "expires", ttl_ms: 1 });
  await pulse.publish({ topic: "a", payload: "stays" });
  const deadline = Date.now() + 10_000;
  let named = await list(pulse, { topic: "a.dlq" });
  while (named.status === 404 || named.body.events.length === 0) {
    assert.ok(Date.now() < deadline, "the dead letter is there");
    await new Promise((resolve) => setTimeout(resolve, 50));
    named = await list(pulse, { topic: "a.dlq" });
  }
  for (const query of [{}, { topic: "#" }, { topic: "a.*" }] satisfies Query[]) {
    const found = (await list(pulse, query)).body.events.map(
      (event: { topic: string }) => event.topic,
    );
    assert.ok(!found.includes("a.dlq"), JSON.stringify(query));
  }
  assert.equal((await list(pulse, { topic: "__state" })).status, 404);
});

test("a caller sees the topics of its tenant and rules only, and a cursor serves one list of one tenant", async (t) => {
  const feed = await startFeed(t);
  const pulse = await startPulseHere(t, feed.env);
  for (const topic of ["a", "b"]) {
    for (const number of [1, 2]) {
      await pulse.post(
        "/api/v1/publish",
        { topic, payload: `${topic}${number}` },
        asUser("publish"),
      );
    }
  }
  const own = asUser("subscribe");
  const page = await list(pulse, { limit: 3 }, own);
  assert.equal(page.body.events.length, 3);
  const cursor = page.body.next_cursor as string;
  assert.equal((await list(pulse, { limit: 1, cursor }, own)).body.events.length, 1);

  const other = asUser("subscribe", { tenant: "other" });
  assert.deepEqual((await list(pulse, {}, other)).body, { events: [], next_cursor: null });
  assert.equal((await list(pulse, { topic: "a" }, other)).status, 404);
  const flipped = `${cursor.slice(0, -2)}${cursor.endsWith("AA") ? "BB" : "AA"}`;
  const refused: [Query, Record<string, string>][] = [
    [{ cursor }, other],
    [{ cursor, key: "k" }, own],
    [{ cursor, to: 5 }, own],
    [{ cursor: flipped }, own],
    [{ cursor: "AAAA" }, own],
    [{ cursor: "" }, own],
  ];
  for (const [query, headers] of refused) {
    const { status, body } = await list(pulse, query, headers);
    assert.deepEqual([status, body.code], [400, "validation_failed"], JSON.stringify(query));
  }

  await pulse.stop();
  await pulse.start();
  const again = await list(pulse, { cursor }, own);
  assert.deepEqual([again.status, again.body.events.length], [200, 1], "after a restart");
});

test("a list of too many partitions, and bad filters, are refused with the reason", async (t) => {
  const pulse = await startPulseHere(t, { PLATFORM_PULSE_PARTITIONS_MAX: "300" });
  await pulse.post("/api/v1/topics", { name: "wide", partitions: 250 });
  await pulse.post("/api/v1/topics", { name: "narrow", partitions: 7 });
  const all = await list(pulse);
  assert.deepEqual([all.status, all.body.code], [422, "too_many_partitions"]);
  assert.match(all.body.detail, /257 partitions.*256/);
  assert.equal((await list(pulse, { topic: "wide" })).status, 200);

  // A position in each of 250 partitions still fits into a cursor.
  const messages = Array.from({ length: 500 }, (_, number) => ({
    topic: "wide",
    payload: String(number),
    key: String(number),
  }));
  assert.equal((await pulse.post("/api/v1/publish/batch", { messages })).status, 200);
  const found = await listAll(pulse, { topic: "wide", limit: 100 });
  assert.equal(new Set(found).size, 500);

  for (const query of [
    { limit: 0 },
    { limit: 501 },
    { from: "yesterday" },
    { to: "-5" },
    { topic: "a*b" },
  ] satisfies Query[]) {
    assert.equal((await list(pulse, query)).status, 400, JSON.stringify(query));
  }
  assert.equal((await list(pulse, { topic: "none" })).status, 404);
});
