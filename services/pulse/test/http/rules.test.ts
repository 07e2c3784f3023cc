import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assemble, loop, shorten, trap } from "../fixture/transforms.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";

let pulse: PulseHere;
const endings: (() => unknown)[] = [];
before(async () => {
  pulse = await startPulseHere({ after: (done) => endings.push(done) });
});
after(async () => {
  for (const done of endings) await done();
});

test("a payload that violates the field map gets 422 with the fields, and nothing is stored", async () => {
  const schema = { user: "string", age: "number" };
  assert.equal((await pulse.post("/api/v1/topics/map/schema", schema)).status, 200);
  const publish = (payload: unknown) =>
    pulse.publish({
      topic: "map",
      payload: typeof payload === "string" ? payload : JSON.stringify(payload),
    });
  assert.equal((await publish({ user: "a", age: 5, more: true })).status, 200);
  const wrong = await publish({ user: 5 });
  assert.equal(wrong.status, 422);
  assert.deepEqual(wrong.body.fields, [
    { field: "user", message: "must be of type string" },
    { field: "age", message: "is missing" },
  ]);
  assert.equal((await publish("no json")).status, 422);
  assert.equal((await pulse.get("/api/v1/tail?topic=map")).body.count, 1);
});

test("JSON Schema validates payloads, and breaking changes are rejected if compatibility is required", async () => {
  const schema = {
    type: "object",
    required: ["id"],
    properties: {
      id: { type: "string", pattern: "^(a+)+$" },
      other: { type: "string", pattern: "^b$" },
      tags: { type: "array", items: { $ref: "#/$defs/tag" } },
    },
    $defs: { tag: { enum: ["x", "y"] } },
  };
  const register = (document: unknown, query = "") =>
    pulse.post(`/api/v1/topics/js/schema${query}`, document);
  assert.equal((await register(schema)).status, 200);
  const publish = (payload: unknown) =>
    pulse.publish({ topic: "js", payload: JSON.stringify(payload) });
  assert.equal((await publish({ id: "aaa", other: "b", tags: ["x"] })).status, 200);
  assert.equal((await publish({ id: "aaa", other: "aaa" })).status, 422);
  const wrong = await publish({ id: "aaa", tags: ["z"] });
  assert.deepEqual([wrong.status, wrong.body.fields[0].field], [422, "tags.0"]);
  const started = performance.now();
  assert.equal((await publish({ id: `${"a".repeat(5_000)}!` })).status, 422);
  assert.ok(
    performance.now() - started < 20_000,
    "a pattern that backtracks elsewhere is linear here",
  );
  const narrower = { ...schema, required: ["id", "tags"] };
  assert.equal((await register(narrower, "?compatibility=backward")).status, 409);
  assert.equal((await register(narrower)).status, 200);
});

test("a field map with an unknown type is rejected instead of accepting everything", async () => {
  const register = (document: unknown) => pulse.post("/api/v1/topics/slips/schema", document);
  for (const document of [
    { user: "strng" },
    { user: "string", age: "numbr" },
    { type: "string", n: "int" },
  ]) {
    const { status, body } = await register(document);
    assert.deepEqual([status, body.code], [400, "validation_failed"]);
    assert.match(body.detail, /no known type; there are string, number/);
  }
  for (const document of [
    { type: "object", title: "Anything" },
    { $comment: "later", type: "object" },
  ]) {
    assert.equal((await register(document)).body.kind, "json-schema");
  }
});

test("schemas with unbounded validation time are rejected", async () => {
  const doubling: Record<string, object> = { d30: {} };
  for (let at = 0; at < 30; at++) {
    const $ref = `#/$defs/d${at + 1}`;
    doubling[`d${at}`] = { anyOf: [{ $ref }, { $ref }] };
  }
  const cases = [
    { $ref: "#/$defs/a", $defs: { a: { anyOf: [{ $ref: "#/$defs/a" }, {}] } }, type: "object" },
    { type: "object", properties: JSON.parse('{"__proto__": {"type": "string"}}') as object },
    { $ref: "https://example.org/schema" },
    { type: "object", properties: { a: { type: "nonsense" } } },
    { $ref: "#/$defs/d0", $defs: doubling },
  ];
  for (const schema of cases) {
    const { status } = await pulse.post("/api/v1/topics/refused/schema", schema);
    assert.equal(status, 400, JSON.stringify(schema).slice(0, 80));
  }
});

const register = (topic: string, bytes: Buffer) =>
  pulse.get(`/api/v1/topics/${topic}/transform`, { method: "POST", body: new Uint8Array(bytes) });

test("a transform changes payloads, also after a restart, until it is deleted", async () => {
  const registered = await register("t", assemble(shorten));
  assert.deepEqual(
    [registered.status, registered.body],
    [200, "Transform registered for topic t\n"],
  );
  const publish = () => pulse.publish({ topic: "t", payload: "hello" });
  assert.equal((await publish()).body.processed_payload, "hell");
  await pulse.kill();
  await pulse.start();
  assert.equal((await publish()).body.processed_payload, "hell");
  assert.equal(
    (await pulse.get("/api/v1/topics")).body.topics.find(
      ({ name }: { name: string }) => name === "t",
    ).has_transform,
    true,
  );
  await register("t", Buffer.alloc(0));
  assert.equal((await publish()).body.processed_payload, "hello");
  const tail = (await pulse.get("/api/v1/tail?topic=t")).body.messages;
  assert.deepEqual(
    tail.map(({ payload }: { payload: string }) => payload),
    ["hell", "hell", "hello"],
  );
  const metrics = (await pulse.get("/metrics")).body;
  assert.match(metrics, /^platform_pulse_wasm_executions_total 1$/m);
});

test("if a transform traps or loops, the original becomes a dead letter with the reason, and the broker continues", async () => {
  for (const [topic, body, reason] of [
    ["trap", trap, /trap/],
    ["loop", loop, /time-limit/],
  ] as const) {
    await register(topic, assemble(body));
    const { status, body: answer } = await pulse.publish({ topic, payload: "original", key: "k" });
    assert.deepEqual([status, answer.routed_to], [200, `${topic}.dlq`]);
    const { messages } = (await pulse.get(`/api/v1/topics/${topic}/dlq`)).body;
    assert.equal(messages[0].original_payload, "original");
    assert.match(messages[0].failure_reason, reason);
    assert.equal((await pulse.get(`/api/v1/tail?topic=${topic}`)).body.count, 0);
  }
  assert.equal((await pulse.publish({ topic: "other", payload: "x" })).status, 200);
  assert.equal((await register("junk", Buffer.from("no module"))).status, 400);
});
