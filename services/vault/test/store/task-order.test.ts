// The order of tasks about one key: a later one waits while an earlier one is tried again, but not for ever.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { createManualClock } from "@platform/kernel/time";
import { waitFor } from "@platform/testing/wait";
import { decodeKey } from "../../src/index/records.ts";
import type { TriggerSettings } from "../../src/model/trigger.ts";
import { makeFolder, makeStore, owner, put } from "./fixture.ts";

const TEN_MINUTES_MS = 600_000;
const TRIGGERS: TriggerSettings = {
  triggers: [
    {
      id: "copy",
      events: ["ObjectCreated:*"],
      module: "copy",
      target: { bucket: "out", key: "{key}" },
      enabled: true,
    },
  ],
  pins: {},
  requester: { principals: [{ kind: "root" }], address: "", secure: false },
};

async function makeRig(context: TestContext) {
  const clock = createManualClock(1_000_000);
  const store = await makeStore(context, { dataDir: makeFolder(context), clock });
  await store.buckets.create({ bucket: "source", owner, region: "us-east-1" });
  await store.buckets.setVersioning("source", "Enabled");
  await store.buckets.setSetting("source", "triggers", TRIGGERS);
  const attempts: string[] = [];
  let failing: string | undefined;
  store.tasks.handle("trigger", async (task) => {
    if (decodeKey(task.key) === "k") failing ??= task.version;
    attempts.push(task.version);
    if (task.version === failing) throw new Error("not now");
    await store.endTask(task);
  });
  const write = async (key: string): Promise<string> =>
    (await put(store, key, "x", { bucket: "source" })).versionId;
  return { clock, store, attempts, write };
}

test("a later version waits ten minutes for an earlier one that fails, and other keys do not", async (context) => {
  const { clock, store, attempts, write } = await makeRig(context);
  const first = await write("k");
  await waitFor(() => attempts.includes(first), "the first attempt");
  const second = await write("k");
  const other = await write("other");
  await waitFor(() => attempts.includes(other), "the other key");
  // It is tried again after 1 s, 2 s, 4 s and so on.
  for (let step = 0; step < 8; step += 1) {
    const before = attempts.length;
    clock.advance(1_000 * 2 ** step);
    await waitFor(() => attempts.length > before, "another attempt");
    assert.deepEqual(new Set(attempts.slice(before)), new Set([first]), `step ${step}`);
  }
  clock.advance(TEN_MINUTES_MS - 255_000 - 1);
  await wait(700);
  assert.ok(!attempts.includes(second));
  clock.advance(2);
  await waitFor(() => attempts.includes(second), "the later version");
  const counts = await store.tasks.count();
  assert.deepEqual(
    counts.map(({ waiting, dead }) => [waiting, dead]),
    [[1, 0]],
  );
});
