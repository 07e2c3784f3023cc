// Figures of topics and groups for the console: contents, settings, transform, lag over time.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { startPulseHere } from "../fixture/pulse-here.ts";
import { asUser, startFeed } from "../fixture/tokens.ts";
import { assemble, shorten } from "../fixture/transforms.ts";

test("topics show what they hold; groups their lag; a transform its size and digest", async (t) => {
  const { env } = await startFeed(t);
  const pulse = await startPulseHere(t, env);
  const [all, outsider] = [asUser("publish subscribe manage"), asUser("manage", { tenant: "b" })];
  const get = (path: string, headers = all) => pulse.get(`/api/v1/${path}`, { headers });
  await pulse.post("/api/v1/topics", { name: "a", config: { retention_ms: 3_600_000 } }, all);
  for (let at = 0; at < 3; at++) {
    await pulse.post("/api/v1/publish", { topic: "a", payload: "x".repeat(100) }, all);
  }
  const [topic] = (await get("topics")).body.topics;
  assert.deepEqual([topic.messages, topic.config.retention_ms], [3, 3_600_000]);
  assert.ok(topic.bytes > 300 && topic.bytes < 3_000, String(topic.bytes));
  assert.ok(topic.messages_per_second === null || topic.messages_per_second >= 0);
  const { config_etag: etag, ...described } = (await get("topics/a")).body;
  assert.deepEqual(described, topic);
  assert.match(etag, /^"[\w-]+"$/);

  const absent = await get("topics/a/transform");
  assert.deepEqual([absent.status, absent.body.detail], [404, "The topic has no transform."]);
  const module = assemble(shorten);
  const registered = await pulse.get("/api/v1/topics/a/transform", {
    method: "POST",
    headers: all,
    body: new Uint8Array(module),
  });
  assert.equal(registered.status, 200);
  const sha256 = createHash("sha256").update(module).digest("hex");
  const { body } = await get("topics/a/transform");
  assert.deepEqual(body, { topic: "a", bytes: module.length, sha256 });
  assert.equal((await get("topics/a/transform", outsider)).status, 404);

  assert.equal((await get("groups/g/lag")).status, 404);
  await pulse.post("/api/v1/offsets", { group: "g", topic: "a", offset: 1 }, all);
  const deadline = performance.now() + 45_000;
  for (;;) {
    const { status, body: lag } = await get("groups/g/lag");
    assert.deepEqual([status, lag.group, lag.sample_ms], [200, "g", 10_000]);
    if (lag.topics.length === 0) {
      assert.ok(performance.now() < deadline, "no sample was taken");
      await new Promise((resolve) => setTimeout(resolve, 250));
      continue;
    }
    const [{ topic: name, lag: current, lagging_since: since, samples }] = lag.topics;
    assert.deepEqual([name, current, samples.length], ["a", 2, 1]);
    assert.deepEqual(samples, [{ time: since, lag: 2 }]);
    break;
  }
  assert.deepEqual((await get("groups/g/lag", asUser("manage"))).body.topics, []);
  assert.equal((await get("groups/g/lag", outsider)).status, 404);
});
