import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere } from "../fixture/pulse-here.ts";

test("a compact topic keeps the last message of each key, and the messages a group has not consumed yet", async (t) => {
  const pulse = await startPulseHere(t, { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0" });
  for (const name of ["kept", "owed"]) {
    const config = { cleanup_policy: "compact", segment_bytes: 65_536 };
    assert.equal((await pulse.post("/api/v1/topics", { name, config })).status, 201);
  }
  const group = await EventReader.open(`${pulse.url}/api/v1/subscribe/owed?group=g&ack=manual`);
  for (let round = 0; round < 30; round++) {
    const messages = ["kept", "owed"].flatMap((topic) =>
      Array.from({ length: 10 }, (_, key) => ({
        topic,
        key: `k${key}`,
        payload: `${round} ${"x".repeat(9_000)}`,
      })),
    );
    assert.equal((await pulse.post("/api/v1/publish/batch", { messages })).status, 200);
  }
  const readRounds = async (topic: string) => {
    const { body } = await pulse.get(`/api/v1/tail?topic=${topic}&n=1000`);
    return body.messages.map(({ key, payload }: { key: string; payload: string }) => [
      key,
      Number.parseInt(payload, 10),
    ]);
  };
  const until = performance.now() + 60_000;
  let kept = await readRounds("kept");
  while (kept.length > 100 && performance.now() < until) {
    await sleep(500);
    kept = await readRounds("kept");
  }
  assert.ok(kept.length <= 100, `${kept.length} of 300 messages are still there`);
  const last = new Map(kept as [string, number][]);
  assert.deepEqual(
    [...last.values()],
    Array.from({ length: 10 }, () => 29),
  );
  assert.equal((await readRounds("owed")).length, 300);
  group.close();
});
