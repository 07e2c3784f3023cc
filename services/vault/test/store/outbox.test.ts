// The outbox: an event for each change that a rule matches, until it is acknowledged.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openStore } from "../../src/open-store.ts";
import { defer, makeFolder, makeStore, owner, put } from "./fixture.ts";

const rule = { id: "r", events: ["ObjectCreated:*", "ObjectRemoved:Delete"], target: { url: "u" } };

test("changes that a rule matches become events, in order, with their object", async (context) => {
  const store = await makeStore(context);
  await put(store, "in/before.txt", "x");
  await store.buckets.setSetting("bucket", "notification", {
    rules: [{ ...rule, prefix: "in/", suffix: ".txt" }],
  });
  const actor = { principalId: "me", sourceIp: "1.2.3.4", requestId: "q" };
  const { etag } = await put(store, "in/a.txt", "hello", { actor });
  await put(store, "in/a.jpg", "x");
  await put(store, "out/a.txt", "x");
  await store.objects.delete({ bucket: "bucket", key: "in/a.txt" });
  await assert.rejects(put(store, "in/b.txt", "x", { conditions: { ifMatch: "no" } }));
  const events = await store.events.read(10);
  assert.deepEqual(
    events.map(({ name, key }) => [name, key]),
    [
      ["ObjectCreated:Put", "in/a.txt"],
      ["ObjectRemoved:Delete", "in/a.txt"],
    ],
  );
  const [created, removed] = events;
  assert.deepEqual([created?.sizeBytes, created?.etag, created?.actor], [5, etag, actor]);
  assert.deepEqual([created?.ruleId, created?.target], ["r", { url: "u" }]);
  assert.ok(created!.sequencer < removed!.sequencer);
  await store.events.acknowledge([created!.id]);
  assert.deepEqual(
    (await store.events.read(10)).map(({ id }) => id),
    [removed!.id],
  );
  assert.equal(store.readStats().pendingEvents, 1);
});

test("events survive a restart, and beyond the limit the oldest are dropped and counted", async (context) => {
  const dataDir = makeFolder(context);
  const open = () => openStore({ dataDir, reserveBytes: 0, pendingEventsMax: 150 });
  const store = await open();
  await store.buckets.create({
    bucket: "bucket",
    owner,
    region: "r",
    settings: { notification: { rules: [rule] } },
  });
  for (let index = 0; index < 200; index += 1) void put(store, `${index}`, "x");
  await put(store, "last", "x");
  await store.close();
  const again = await open();
  defer(context, () => again.close());
  const events = await again.events.read(1000);
  assert.equal(events.length, 101);
  assert.equal(events.at(-1)?.key, "last");
  assert.equal(again.readStats().droppedEvents, 100);
  const told = new Promise<void>((resolve) => {
    const stop = again.events.onEvents(() => {
      stop();
      resolve();
    });
  });
  await put(again, "one more", "x");
  await told;
});
