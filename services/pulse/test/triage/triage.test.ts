// Suggestions for dead letters: each kind of damage is recognized, the suggestion repairs it, and the confidence is what happens.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { assemble, shorten, shortenOrTrap, trap } from "../fixture/transforms.ts";
import { asUser, startFeed } from "../fixture/tokens.ts";

const EACH = 84;
const UNLIMITED = { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0" };

type Order = Record<string, unknown>;

/** A way in which letters are damaged, and what is suggested for it. */
interface Damage {
  name: string;
  letter: (number: number) => unknown;
  schema: Record<string, unknown>;
  action: string;
  change?: Record<string, unknown>;
  /** Messages that the topic has accepted. */
  accepted?: (number: number) => unknown;
}

const object = (properties: Order, others: Order = {}) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  ...others,
});
const text = { type: "string" };
const number = { type: "number" };

const DAMAGES: Damage[] = [
  {
    name: "another case",
    letter: (id) => ({ orderID: id }),
    schema: object({ orderId: number }),
    action: "requeue_changed",
    change: { patch: [{ op: "move", from: "/orderID", path: "/orderId" }] },
  },
  {
    name: "dashes and underscores",
    letter: (id) => ({ buyer: { first_name: `n${id}` } }),
    schema: object({ buyer: object({ firstName: text }) }),
    action: "requeue_changed",
    change: { patch: [{ op: "move", from: "/buyer/first_name", path: "/buyer/firstName" }] },
  },
  {
    name: "a typo",
    letter: (id) => ({ adress: `street ${id}` }),
    schema: { address: "string" },
    action: "requeue_changed",
    change: { patch: [{ op: "move", from: "/adress", path: "/address" }] },
  },
  {
    name: "a default",
    letter: (id) => ({ id }),
    schema: object({ id: number, currency: { type: "string", default: "EUR" } }),
    action: "requeue_changed",
    change: { patch: [{ op: "add", path: "/currency", value: "EUR" }] },
  },
  {
    name: "the usual value",
    letter: (id) => ({ id }),
    schema: object({ id: number, source: text }),
    accepted: (id) => ({ id, source: id === 7 ? "app" : "shop" }),
    action: "requeue_changed",
    change: { patch: [{ op: "add", path: "/source", value: "shop" }] },
  },
  {
    name: "numbers as text, a few of them none",
    letter: (id) => ({ total: id % 50 === 3 ? "many" : String(id) }),
    schema: object({ total: { type: "integer" } }),
    action: "requeue_changed",
    change: { convert: [{ path: "/total", to: "integer" }] },
  },
  {
    name: "text as numbers",
    letter: (id) => ({ zip: 10_000 + id }),
    schema: { zip: "string" },
    action: "requeue_changed",
    change: { convert: [{ path: "/zip", to: "string" }] },
  },
  {
    name: "a field too many",
    letter: (id) => ({ id, "debug/trace": "x" }),
    schema: object({ id: number }, { additionalProperties: false }),
    action: "requeue_changed",
    change: { patch: [{ op: "remove", path: "/debug~1trace" }] },
  },
  {
    name: "two faults",
    letter: (id) => ({ orderID: String(id), paid: "true" }),
    schema: object({ orderId: number, paid: { type: "boolean" } }),
    action: "requeue_changed",
  },
  {
    name: "a strict schema",
    letter: (id) => ({ total: 1_000 + id }),
    schema: object({ total: { type: "number", maximum: 100 } }),
    action: "change_schema",
  },
  {
    name: "text that is no JSON",
    letter: (id) => `order ${id}`,
    schema: object({ id: number }),
    action: "discard",
  },
  {
    name: "fields that are there no more",
    letter: (id) => ({ x: id }),
    schema: { total: "number" },
    action: "discard",
  },
];

const format = (content: unknown) =>
  typeof content === "string" ? content : JSON.stringify(content);

/** Publishes messages that expire at once, and waits until they are dead letters. */
async function bury(pulse: PulseHere, topic: string, payloads: readonly string[]): Promise<void> {
  const messages = payloads.map((payload) => ({ topic, payload, ttl_ms: 1 }));
  assert.equal((await pulse.post("/api/v1/publish/batch", { messages })).status, 200);
  await waitFor(async () => {
    const { body } = await pulse.get(`/api/v1/topics/${topic}/dlq/summary`);
    return body.total === payloads.length;
  });
}

async function suggest(pulse: PulseHere, topic: string) {
  const { status, body } = await pulse.get(`/api/v1/topics/${topic}/dlq/triage`);
  assert.equal(status, 200, JSON.stringify(body));
  return body.suggestions[0];
}

function send(
  pulse: PulseHere,
  { method, path, body }: { method: string; path: string; body: unknown },
) {
  return pulse.get(path, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

test("each kind of damage is recognized; the request repairs what the confidence says", async (t) => {
  const pulse = await startPulseHere(t, UNLIMITED);
  for (const [index, damage] of DAMAGES.entries()) {
    const topic = `damage-${index}`;
    const numbers = Array.from({ length: EACH }, (_, id) => id);
    await bury(
      pulse,
      topic,
      numbers.map((id) => format(damage.letter(id))),
    );
    const { accepted } = damage;
    if (accepted !== undefined) {
      const messages = Array.from({ length: 200 }, (_, id) => ({
        topic,
        payload: format(accepted(id)),
      }));
      await pulse.post("/api/v1/publish/batch", { messages });
    }
    const registered = await pulse.post(`/api/v1/topics/${topic}/schema`, damage.schema);
    assert.equal(registered.status, 200, JSON.stringify(registered.body));

    const advice = await suggest(pulse, topic);
    const shown = `${damage.name}: ${JSON.stringify(advice)}`;
    assert.deepEqual(
      [advice.kind, advice.action, advice.count],
      ["schema", damage.action, EACH],
      shown,
    );
    const { patch, convert } = advice;
    if (damage.change !== undefined) {
      assert.deepEqual(
        { ...(patch && { patch }), ...(convert && { convert }) },
        damage.change,
        shown,
      );
    }
    assert.equal(advice.evidence.tried, EACH, shown);
    assert.equal(advice.evidence.examples.length, 3, shown);

    const applied = await send(pulse, advice.request);
    assert.equal(applied.status, 200, `${shown} ${JSON.stringify(applied.body)}`);
    if (advice.action === "requeue_changed") {
      const share = applied.body.succeeded / EACH;
      assert.ok(share >= 0.95 && Math.abs(share - advice.confidence) <= 0.05, `${share} ${shown}`);
    } else if (advice.action === "change_schema") {
      const again = await suggest(pulse, topic);
      assert.equal(again.evidence.pass, EACH);
    } else {
      assert.deepEqual([advice.confidence, applied.body.succeeded], [1, EACH], shown);
    }
  }
});

test("letters of a transform are requeued when it accepts them now, and name its failure otherwise", async (t) => {
  const pulse = await startPulseHere(t, UNLIMITED);
  const set = (body: number[]) =>
    pulse.get("/api/v1/topics/a/transform", {
      method: "PUT",
      headers: { "content-type": "application/wasm" },
      body: new Uint8Array(assemble(body)),
    });
  await pulse.publish({ topic: "a", payload: "first" });
  assert.ok((await set(trap)).status < 300);
  for (let number = 0; number < 5; number++)
    await pulse.publish({ topic: "a", payload: `m${number}` });
  const failing = await suggest(pulse, "a");
  assert.deepEqual(
    [failing.kind, failing.action, failing.evidence.fail],
    ["transform", "fix_transform", 5],
  );
  assert.match(failing.cause, /trapped/);
  assert.equal(failing.request, undefined);
  for (const body of [shorten, shortenOrTrap]) {
    assert.ok((await set(body)).status < 300);
    const advice = await suggest(pulse, "a");
    assert.deepEqual([advice.action, advice.evidence.pass], ["requeue", 5]);
  }
  const { body } = await send(pulse, (await suggest(pulse, "a")).request);
  assert.equal(body.succeeded, 5);
});

test("expired letters without a subscriber need a consumer; with one, a longer time to live", async (t) => {
  const pulse = await startPulseHere(t, UNLIMITED);
  await bury(pulse, "a", ["1", "2"]);
  const alone = await suggest(pulse, "a");
  assert.deepEqual([alone.kind, alone.action], ["ttl", "fix_consumer"]);
  const reading = new AbortController();
  t.after(() => reading.abort());
  await fetch(`${pulse.url}/api/v1/subscribe/a`, { signal: reading.signal });
  const watched = await suggest(pulse, "a");
  assert.deepEqual([watched.action, watched.confidence], ["raise_ttl", 0.75]);
  assert.match(watched.cause, /ttl_ms of 60000/);
});

test("letters that a group did not acknowledge are requeued once it goes on", async (t) => {
  const pulse = await startPulseHere(t, { ...UNLIMITED, PLATFORM_PULSE_MAX_DELIVERIES: "1" });
  const path = `${pulse.url}/api/v1/subscribe/a?group=g%201&ack=manual`;
  const reading = new AbortController();
  t.after(() => reading.abort());
  await pulse.publish({ topic: "a", payload: "x", message_id: "bad" });
  await fetch(`${path}&from=earliest`, { signal: reading.signal });
  const ask = (verb: string, id: string) =>
    pulse.post(`/api/v1/${verb}`, { topic: "a", group: "g 1", message_id: id });
  await waitFor(async () => (await ask("nack", "bad")).status === 200);
  await waitFor(async () => {
    const { body } = await pulse.get("/api/v1/topics/a/dlq/summary");
    return body.total === 1;
  });
  const stuck = await suggest(pulse, "a");
  assert.deepEqual([stuck.kind, stuck.action], ["deliveries", "fix_consumer"]);
  assert.match(stuck.cause, /group g 1/);
  // Times of letters are whole seconds.
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  await pulse.publish({ topic: "a", payload: "y", message_id: "good" });
  await waitFor(async () => (await ask("ack", "good")).status === 200);
  await waitFor(async () => (await suggest(pulse, "a")).action === "requeue");
});

test("triage needs the right to read the topic, and runs once at a time for a tenant", async (t: TestContext) => {
  const feed = await startFeed(t);
  const pulse = await startPulseHere(t, { ...feed.env, ...UNLIMITED });
  await pulse.post("/api/v1/publish", { topic: "a", payload: "x" }, asUser("publish"));
  const ask = (headers: Record<string, string>, topic = "a") =>
    pulse.get(`/api/v1/topics/${topic}/dlq/triage`, { headers });
  assert.equal((await ask(asUser("publish"))).status, 403);
  assert.equal((await ask(asUser("subscribe", { tenant: "other" }))).status, 404);
  assert.equal((await ask(asUser("subscribe"), "none")).status, 404);
  const { status, body } = await ask(asUser("subscribe"));
  assert.deepEqual(
    [status, body],
    [200, { dlq_topic: "a.dlq", total: 0, is_complete: true, suggestions: [] }],
  );
});

test("hostile letters cost a bounded time: deep, large and many fields, and a transform that never ends", async (t) => {
  const pulse = await startPulseHere(t, UNLIMITED);
  const deep = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;
  const wide = JSON.stringify(
    Object.fromEntries(Array.from({ length: 20_000 }, (_, id) => [`f${id}`, id])),
  );
  const payloads = Array.from({ length: 60 }, (_, index) => (index % 2 === 0 ? deep : wide));
  await bury(pulse, "a", payloads);
  await pulse.post("/api/v1/topics/a/schema", object({ total: number }));
  const started = performance.now();
  const advice = await suggest(pulse, "a");
  assert.equal(advice.action, "discard");
  assert.ok(performance.now() - started < 20_000, "bounded");
});
