// Replicas among the versions of a key, whenever they arrive; and failed tasks of replication, which run again after an hour.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createManualClock } from "@platform/kernel/time";
import { waitFor } from "@platform/testing/wait";
import type { ReplicationSettings } from "../../src/model/replication.ts";
import type { Store } from "../../src/object-store.ts";
import { LateVersions } from "../../src/replication/late-versions.ts";
import { ReplicationFault } from "../../src/replication/target.ts";
import { LATE_MS } from "../../src/transaction/replication-operations.ts";
import { makeFolder, makeStore, owner, put } from "../store/fixture.ts";

const REPLICATION: ReplicationSettings = {
  role: "",
  requester: { principals: [{ kind: "root" }], address: "", secure: false },
  rules: [
    {
      id: "r",
      priority: 1,
      enabled: true,
      deleteMarkers: true,
      existingObjects: false,
      replicaModifications: false,
      destination: { bucket: "elsewhere" },
      echo: {},
    },
  ],
};

const name = (letter: string): string => letter.repeat(32);

async function makeVersioned(
  context: TestContext,
  clock = createManualClock(1_000_000),
): Promise<Store> {
  const store = await makeStore(context, { dataDir: makeFolder(context), clock });
  await store.buckets.create({ bucket: "bbb", owner, region: "us-east-1" });
  await store.buckets.setVersioning("bbb", "Enabled");
  return store;
}

async function place(store: Store, letter: string, modifiedMs: number, key = "k"): Promise<void> {
  const upload = store.objects.beginPut({
    bucket: "bbb",
    key,
    contentLength: 1,
    source: { versionId: name(letter), modifiedMs },
  });
  await upload.write(Buffer.from(letter));
  await upload.commit();
}

async function listIds(store: Store, prefix = ""): Promise<string[]> {
  const { versions } = await store.objects.listVersions({ bucket: "bbb", prefix });
  return versions.map(
    (row) => `${row.versionId[0]}${row.isLatest ? "!" : ""}${row.isDeleteMarker ? "-" : ""}`,
  );
}

test("replicas have the order of their times, then of their ids, in whichever order they arrive", async (context) => {
  const orders = [
    ["a1", "b2", "c3", "d3"],
    ["d3", "c3", "b2", "a1"],
    ["c3", "a1", "d3", "b2"],
    ["b2", "d3", "a1", "c3"],
  ];
  const store = await makeVersioned(context);
  for (const [index, order] of orders.entries()) {
    const key = `k${index}`;
    for (const one of order) {
      const source = { versionId: name(one[0]!), modifiedMs: Number(one[1]) };
      if (one === "b2") await store.objects.delete({ bucket: "bbb", key, source });
      else await place(store, one[0]!, source.modifiedMs, key);
    }
    assert.deepEqual(await listIds(store, key), ["d!", "c", "b-", "a"], order.join(" "));
    const { object } = await store.objects.head({ bucket: "bbb", key });
    assert.equal(object.versionId, name("d"));
  }
  const usage = store.readUsage("bbb");
  assert.deepEqual([usage.objects, usage.versions, usage.deleteMarkers], [4, 12, 4]);
});

test("a late marker does not hide the live object, a newer one does", async (context) => {
  const store = await makeVersioned(context);
  await place(store, "m", 500);
  const mark = (letter: string, modifiedMs: number) =>
    store.objects.delete({
      bucket: "bbb",
      key: "k",
      source: { versionId: name(letter), modifiedMs },
    });
  await mark("l", 400);
  assert.deepEqual(await listIds(store), ["m!", "l-"]);
  await mark("n", 600);
  assert.deepEqual(await listIds(store), ["n!-", "m", "l-"]);
  await place(store, "k", 550);
  assert.deepEqual(await listIds(store), ["n!-", "k", "m", "l-"]);
  await store.objects.delete({ bucket: "bbb", key: "k", versionId: name("n") });
  assert.deepEqual(await listIds(store), ["k!", "m", "l-"]);
});

test("a replica that is here already is refused, and none is placed without versions", async (context) => {
  const store = await makeVersioned(context);
  await place(store, "a", 1);
  await assert.rejects(place(store, "a", 1), { code: "OperationAborted" });
  await store.buckets.setVersioning("bbb", "Suspended");
  await assert.rejects(place(store, "b", 2), { code: "InvalidRequest" });
});

test("a local version comes after a replica from a clock that is ahead", async (context) => {
  const store = await makeVersioned(context);
  await store.buckets.create({ bucket: "elsewhere", owner, region: "us-east-1" });
  await store.buckets.setSetting("bbb", "replication", REPLICATION);
  await place(store, "z", 1_300_000);
  const local = await put(store, "k", "local", { bucket: "bbb" });
  const { object } = await store.objects.head({ bucket: "bbb", key: "k" });
  assert.equal(object.versionId, local.versionId);
  assert.ok(object.modifiedMs > 1_300_000, `${object.modifiedMs}`);
});

test("what has failed waits an hour, and is not forgotten", async (context) => {
  const clock = createManualClock(1_000_000);
  const store = await makeVersioned(context, clock);
  await store.buckets.setSetting("bbb", "replication", REPLICATION);
  const { versionId } = await put(store, "k", "x", { bucket: "bbb" });
  let runs = 0;
  store.tasks.handle("replicate", async (task) => {
    runs += 1;
    const { id, seq } = task;
    await store.replication.finish({
      task: { id, seq },
      bucket: "bbb",
      key: "k",
      version: versionId,
      rule: "r",
      outcome: { kind: "failed", reason: "no" },
    });
  });
  const count = async (): Promise<number[]> => {
    const [counts] = await store.tasks.count();
    return [counts!.waiting, counts!.dead];
  };
  const until = async (wanted: number): Promise<void> => {
    await waitFor(async () => runs >= wanted && (await count())[1] === 1, "the run");
  };
  await until(1);
  const [failed] = await store.listDeadTasks({ kind: "replicate" }, 0, 10);
  assert.equal(failed!.reason, "no");
  clock.advance(3_599_000);
  await store.replication.retryFailed(3_600_000);
  assert.deepEqual(await count(), [0, 1]);
  clock.advance(1_000);
  await store.replication.retryFailed(3_600_000);
  await until(2);
  assert.deepEqual(await count(), [0, 1]);
});

test("a version follows within a minute of its destination's return, however often that was away", async (context) => {
  const clock = createManualClock(1_000_000);
  const store = await makeVersioned(context, clock);
  await store.buckets.setSetting("bbb", "replication", REPLICATION);
  await put(store, "k", "x", { bucket: "bbb" });
  let tries = 0;
  store.tasks.handle("replicate", async () => {
    tries += 1;
    throw new ReplicationFault("it does not answer", "outage");
  });
  for (let minute = 0; minute < 14; minute += 1) {
    await waitFor(() => tries > minute, `attempt ${minute}`);
    await waitFor(() => store.tasks.countRunning("replicate") === 0, "its end");
    clock.advance(60_000);
    store.tasks.wake();
  }
});

test("events report once that a version waits for too long, and that its rule is gone", async (context) => {
  const clock = createManualClock(1_000_000);
  const store = await makeVersioned(context, clock);
  await store.buckets.setSetting("bbb", "replication", REPLICATION);
  await store.buckets.setSetting("bbb", "notification", {
    rules: [{ id: "n", events: ["Replication:*"], target: { kind: "webhook", url: "http://x" } }],
  });
  const late = new LateVersions(store);
  const report = () => late.report(clock.now() - LATE_MS);
  const take = async (): Promise<string[]> => {
    const events = await store.events.read(100);
    await store.events.acknowledge(events.map(({ id }) => id));
    return events.map(
      ({ name: event, key }) => `${event.slice("Replication:Operation".length)} ${key}`,
    );
  };
  for (const key of ["again", "early"]) await put(store, key, "x", { bucket: "bbb" });
  clock.advance(LATE_MS - 1);
  await report();
  assert.deepEqual(await take(), []);
  await store.objects.setTags({ bucket: "bbb", key: "again" }, { a: "b" });
  await put(store, "young", "x", { bucket: "bbb" });
  clock.advance(1);
  await report();
  await report();
  // A change of a version that waits begins its time again.
  assert.deepEqual(await take(), ["MissedThreshold early"]);
  await new LateVersions(store).report(clock.now() - LATE_MS);
  assert.deepEqual(await take(), [], "also after a restart");
  clock.advance(LATE_MS);
  await report();
  assert.deepEqual((await take()).toSorted(), ["MissedThreshold again", "MissedThreshold young"]);

  store.tasks.handle("replicate", async ({ id, seq, key, version, rule }) => {
    const outcome = { kind: "dropped" } as const;
    const task = { id, seq };
    await store.replication.finish({
      task,
      bucket: "bbb",
      key: Buffer.from(key).toString(),
      version,
      rule,
      outcome,
    });
  });
  await waitFor(async () => (await store.tasks.count()).length === 0, "the end of the tasks");
  assert.deepEqual(
    (await take()).toSorted(),
    ["again", "early", "young"].map((key) => `NotTracked ${key}`),
  );
});

test("many changes of one key do not hide other keys, and keep their order", async (context) => {
  const clock = createManualClock(1_000_000);
  const store = await makeVersioned(context, clock);
  await store.buckets.setSetting("bbb", "replication", REPLICATION);
  const hot: string[] = [];
  // More than are read in one go.
  for (let n = 0; n < 100; n += 1) {
    const { versionId } = await put(store, "hot", "x", { bucket: "bbb" });
    hot.push(versionId);
  }
  await put(store, "other", "x", { bucket: "bbb" });
  const seen: string[] = [];
  let isOtherSent = false;
  const { promise, resolve } = Promise.withResolvers<void>();
  store.tasks.handle(
    "replicate",
    async ({ id, seq, key: bytes, version, rule }, _signal, freePlace) => {
      const key = Buffer.from(bytes).toString();
      if (key === "hot") {
        await promise;
        seen.push(version);
      } else isOtherSent = true;
      freePlace();
      const task = { id, seq };
      const outcome = { kind: "dropped" } as const;
      await store.replication.finish({ task, bucket: "bbb", key, version, rule, outcome });
    },
    { find: () => "", countPlaces: () => 4 },
  );
  try {
    await waitFor(
      () => isOtherSent,
      "the other key, while the first version of the hot one is sent",
    );
  } finally {
    resolve();
  }
  await waitFor(async () => (await store.tasks.count()).length === 0, "the end of the tasks");
  assert.deepEqual(seen, hot);
});
