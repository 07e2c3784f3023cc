// Rows that are kept in memory: readers in a loop across every kind of change never see a state from before an acknowledgement.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { test, type TestContext } from "node:test";
import { createManualClock, type ManualClock } from "@platform/kernel/time";
import type { ObjectInfo } from "../../src/model/object.ts";
import { StoreError } from "../../src/model/store-error.ts";
import type { Store } from "../../src/object-store.ts";
import { RecentRows } from "../../src/query/recent-rows.ts";
import type { StoredVersion } from "../../src/query/stored-version.ts";
import type { Operation } from "../../src/transaction/operations.ts";
import type { BucketState } from "../../src/transaction/writer-context.ts";
import { makeStore, owner, put, read } from "./fixture.ts";

const DAY = 86_400_000;
const BUCKET = "bucket";
const KEY = "key";
const MISSING = "missing";
const ROUNDS = 4;

/** All states of the object, oldest first; the last ones may not be acknowledged yet. */
interface Timeline {
  states: string[];
  acknowledged: number;
}

type Look = (store: Store) => Promise<string>;

/** Ways to the row of an object. */
const LOOKS: Readonly<Record<string, Look>> = {
  get: async (store) => {
    const { object, body } = await store.objects.get({ bucket: BUCKET, key: KEY });
    const chunks: Buffer[] = [];
    for await (const chunk of body.chunks()) chunks.push(chunk);
    assert.equal(Buffer.concat(chunks).toString(), object.metadata["body"]);
    return describe(object);
  },
  head: async (store) => describe((await store.objects.head({ bucket: BUCKET, key: KEY })).object),
  describe: async (store) => describe(await store.objects.describe({ bucket: BUCKET, key: KEY })),
  "get by version": async (store) => {
    const { versionId } = await store.objects.describe({ bucket: BUCKET, key: KEY });
    try {
      return describe((await store.objects.get({ bucket: BUCKET, key: KEY, versionId })).object);
    } catch (error) {
      // It was replaced, maybe by a delete marker of the same version, between the two calls.
      const code = error instanceof StoreError ? error.code : "";
      if (["NoSuchVersion", "MethodNotAllowed"].includes(code)) return LOOKS.head!(store);
      throw error;
    }
  },
  copy: async (store) => {
    const source = { bucket: BUCKET, key: KEY };
    const key = `copy-${(copies += 1)}`;
    await store.copies.copy({ source, bucket: "copies", key, attributes: {} });
    const { metadata, tags } = await store.objects.describe({ bucket: "copies", key });
    return `${metadata["body"]},${tags["tag"] ?? ""}`;
  },
};
let copies = 0;

function describe({ metadata, tags }: ObjectInfo): string {
  return `${metadata["body"]},${tags["tag"] ?? ""}`;
}

async function lookAt(store: Store, look: Look): Promise<string> {
  try {
    return await look(store);
  } catch (error) {
    const code = error instanceof StoreError ? error.code : undefined;
    if (code === "NoSuchKey" || code === "NoSuchBucket") return MISSING;
    throw error;
  }
}

/** An object that changes while readers look at it. */
class WatchedObject {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly timeline: Timeline = { states: [MISSING], acknowledged: 0 };
  readonly wrong = new Set<string>();
  reads = 0;
  #bodies = 0;
  #isOver = false;
  #readers: Promise<void>[] = [];

  constructor(store: Store, clock: ManualClock) {
    this.store = store;
    this.clock = clock;
  }

  /** Starts a reader for each look, and writers of other keys, so that groups are always being written. */
  start(): void {
    for (const [name, look] of Object.entries(LOOKS)) {
      this.#readers.push(this.#repeat(() => this.#check(name, look)));
    }
    this.#readers.push(this.#repeat(() => this.#checkAfterListing()));
    for (const key of ["other-1", "other-2"]) {
      this.#readers.push(
        this.#repeat(() =>
          put(this.store, key, "other", { bucket: "copies" }).then(() => undefined),
        ),
      );
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#readers.splice(0));
  }

  /** Changes the object. All looks must show it as soon as it is acknowledged. */
  async change<Result>(next: string, work: () => Promise<Result>): Promise<Result> {
    const { timeline } = this;
    timeline.states.push(next);
    const result = await work();
    timeline.acknowledged = timeline.states.length - 1;
    await Promise.all(Object.entries(LOOKS).map(([name, look]) => this.#check(name, look)));
    return result;
  }

  /** A new body, by `write`. */
  async write<Result>(
    write: (body: string, more: { metadata: Record<string, string> }) => Promise<Result>,
  ): Promise<Result & { state: string }> {
    const body = `body ${(this.#bodies += 1)}`;
    const state = `${body},`;
    const result = await this.change(state, () => write(body, { metadata: { body } }));
    return { ...result, state };
  }

  put() {
    return this.write((body, more) => put(this.store, KEY, body, more));
  }

  async #repeat(work: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      await work();
      await nextTurn();
    }
  }

  async #check(name: string, look: Look): Promise<void> {
    const { acknowledged } = this.timeline;
    this.#judge(name, await lookAt(this.store, look), acknowledged);
  }

  // A row that a listing has shown is not followed by an older one.
  async #checkAfterListing(): Promise<void> {
    const { states, acknowledged } = this.timeline;
    const page = await this.store.objects.list({ bucket: BUCKET }).catch(() => undefined);
    const listed = page?.objects.find(({ key }) => key === KEY);
    const isListed = (state: string) =>
      listed !== undefined && md5(state.slice(0, state.indexOf(","))) === listed.etag;
    const from = Math.max(acknowledged, states.findIndex(isListed));
    this.#judge("after a listing", await lookAt(this.store, LOOKS.get!), from);
  }

  #judge(name: string, found: string, from: number): void {
    this.reads += 1;
    const allowed = this.timeline.states.slice(from);
    if (!allowed.includes(found))
      this.wrong.add(`${name}: ${found}, allowed: ${allowed.join(" | ")}`);
  }
}

function md5(text: string): string {
  return createHash("md5").update(text).digest("hex");
}

async function watch(context: TestContext): Promise<WatchedObject> {
  const clock = createManualClock(Date.UTC(2026, 0, 1, 12));
  const store = await makeStore(context, { clock, partBytesMin: 1 });
  await store.buckets.create({ bucket: "copies", owner, region: "us-east-1" });
  return new WatchedObject(store, clock);
}

async function complete(object: WatchedObject): Promise<void> {
  await object.write(async (body, { metadata }) => {
    const { uploads } = object.store;
    const { uploadId } = await uploads.create({ bucket: BUCKET, key: KEY, metadata });
    const parts = [];
    for (const [index, piece] of [body.slice(0, 3), body.slice(3)].entries()) {
      const address = { bucket: BUCKET, key: KEY, uploadId, partNumber: index + 1 };
      const part = uploads.beginPart({ ...address, contentLength: piece.length });
      await part.write(Buffer.from(piece));
      parts.push({ partNumber: index + 1, etag: (await part.commit()).etag });
    }
    return uploads.complete({ bucket: BUCKET, key: KEY, uploadId, parts });
  });
}

async function changeUnversioned(object: WatchedObject): Promise<void> {
  const { store } = object;
  const address = { bucket: BUCKET, key: KEY };
  await object.put();
  const { state } = await object.put();
  await object.change(`${state}a`, () => store.objects.setTags(address, { tag: "a" }));
  await object.change(state, () => store.objects.setTags(address, {}));
  await complete(object);
  await object.change(MISSING, () => store.objects.delete(address));
  await complete(object);
  await object.write(async (body, { metadata }) => {
    await put(store, "source", body);
    return store.copies.copy({
      source: { bucket: BUCKET, key: "source" },
      ...address,
      metadataDirective: "REPLACE",
      attributes: { metadata },
    });
  });
  await object.change(MISSING, () =>
    store.objects.deleteMany([{ bucket: BUCKET, key: "source" }, address]),
  );
  await object.change(MISSING, () => store.buckets.delete(BUCKET));
  await object.change(MISSING, () =>
    store.buckets.create({ bucket: BUCKET, owner, region: "us-east-1" }),
  );
  await object.put();
  const rules = [{ id: "r", enabled: true, filter: {}, expiration: { days: 1 } }];
  await store.buckets.setSetting(BUCKET, "lifecycle", { rules });
  object.clock.advance(3 * DAY);
  await object.change(MISSING, () => store.maintenance.expire());
  await store.buckets.deleteSetting(BUCKET, "lifecycle");
}

async function changeVersions(object: WatchedObject): Promise<void> {
  const { store } = object;
  const address = { bucket: BUCKET, key: KEY };
  await store.buckets.setVersioning(BUCKET, "Enabled");
  const first = await object.put();
  const second = await object.put();
  const marker = await object.change(MISSING, () => store.objects.delete(address));
  await object.change(second.state, () =>
    store.objects.delete({ ...address, versionId: marker.versionId! }),
  );
  await object.change(first.state, () =>
    store.objects.delete({ ...address, versionId: second.versionId }),
  );
  await assert.rejects(read(store, KEY, { versionId: second.versionId }), {
    code: "NoSuchVersion",
  });
  await store.buckets.setVersioning(BUCKET, "Suspended");
  await object.put();
  await object.put();
  await object.change(MISSING, () => store.objects.delete(address));
  const again = await object.put();
  assert.equal(again.versionId, "null");
  await object.change(first.state, () => store.objects.delete({ ...address, versionId: "null" }));
  await object.change(MISSING, () =>
    store.objects.deleteMany([{ ...address, versionId: first.versionId }]),
  );
}

test("readers in a loop never see an object from before an acknowledged change", async (context) => {
  const object = await watch(context);
  object.start();
  try {
    for (let round = 0; round < ROUNDS; round += 1) await changeUnversioned(object);
    for (let round = 0; round < ROUNDS; round += 1) await changeVersions(object);
  } finally {
    await object.stop();
  }
  assert.deepEqual([...object.wrong], []);
  context.diagnostic(`${object.reads} reads over ${object.timeline.states.length} states`);
  assert.ok(object.reads > 10 * object.timeline.states.length);
});

test("a refused change leaves the object as it was, and is followed by the next one", async (context) => {
  const object = await watch(context);
  const { store } = object;
  object.start();
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { state } = await object.put();
      await object.change(state, () =>
        assert.rejects(put(store, KEY, "refused", { conditions: { ifNoneMatch: "*" } }), {
          code: "PreconditionFailed",
        }),
      );
    }
  } finally {
    await object.stop();
  }
  assert.deepEqual([...object.wrong], []);
});

const STATE = { id: 7, bucket: { name: "bucket" } } as BucketState;

function makeRow(key: string, bodyBytes: number): StoredVersion {
  const row = { bucket: STATE.id, key: Buffer.from(key), detail: "{}", tags: null };
  const place = { kind: "inline", data: new Uint8Array(bodyBytes) };
  return { row, blob: { place }, isLatest: true } as unknown as StoredVersion;
}

function makeDelete(key: string): Operation {
  return { type: "delete", request: { bucket: "bucket", key }, nowMs: 0, markerId: "" };
}

test("the memory of rows is bounded, and rows that are read again stay longest", () => {
  const rows = new RecentRows(20_000);
  for (let index = 0; index < 100; index += 1) {
    rows.keep(STATE, `key-${index}`, makeRow(`key-${index}`, 1_000));
    assert.ok(rows.bytes <= 20_000);
    assert.equal(rows.find(STATE, "key-0") === undefined, false);
  }
  assert.equal(rows.find(STATE, "key-1"), undefined);
  assert.notEqual(rows.find(STATE, "key-99"), undefined);
  rows.keep(STATE, "large", makeRow("large", 20_001));
  assert.equal(rows.find(STATE, "large"), undefined);
  rows.clear();
  assert.equal(rows.bytes, 0);
});

test("a row is not kept while a change of it is being written", () => {
  const rows = new RecentRows();
  rows.keep(STATE, "a", makeRow("a", 1));
  rows.keep(STATE, "b", makeRow("b", 1));
  rows.begin([makeDelete("a")]);
  rows.keep(STATE, "a", makeRow("a", 1));
  assert.equal(rows.find(STATE, "a"), undefined);
  assert.notEqual(rows.find(STATE, "b"), undefined);
  rows.end();
  rows.keep(STATE, "a", makeRow("a", 1));
  assert.notEqual(rows.find(STATE, "a"), undefined);
  rows.begin([{ type: "deleteBucket", bucket: "bucket" }]);
  assert.equal(rows.bytes, 0);
});

test("rows of a deleted bucket, and rows whose body may move, are not used", () => {
  const rows = new RecentRows();
  rows.keep(STATE, "a", makeRow("a", 1));
  assert.equal(rows.find({ ...STATE, id: 8 }, "a"), undefined);
  const moving = makeRow("b", 1);
  moving.blob!.place = { kind: "segment", segment: 1, position: 16 };
  rows.keep(STATE, "b", moving);
  assert.equal(rows.find(STATE, "b"), undefined);
});
