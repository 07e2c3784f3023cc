// Versions and listings compared with a simple model.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ListVersionsResult, VersionPosition } from "../../src/model/version.ts";
import type { Store } from "../../src/object-store.ts";
import { makeStore, owner, put, read } from "./fixture.ts";

interface ModelVersion {
  id: string;
  body: string | undefined;
}

/** A bucket: the versions of each key, newest first. A body of `undefined` is a delete marker. */
class Model {
  versioning: "Unset" | "Enabled" | "Suspended" = "Unset";
  readonly keys = new Map<string, ModelVersion[]>();

  put(key: string, id: string, body: string | undefined): void {
    const versions = (this.keys.get(key) ?? []).filter((version) => version.id !== id);
    this.keys.set(key, [{ id, body }, ...versions]);
  }

  remove(key: string, id: string): void {
    const left = (this.keys.get(key) ?? []).filter((version) => version.id !== id);
    if (left.length === 0) this.keys.delete(key);
    else this.keys.set(key, left);
  }

  live(): [key: string, body: string][] {
    return this.sorted().flatMap(([key, [newest]]) =>
      newest?.body === undefined ? [] : [[key, newest.body] as [string, string]],
    );
  }

  sorted(): [string, ModelVersion[]][] {
    return [...this.keys].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  }
}

type Step =
  | { type: "put"; key: string; body: string }
  | { type: "delete"; key: string }
  | { type: "deleteVersion"; key: string; pick: number }
  | { type: "copy"; from: string; to: string }
  | { type: "versioning"; state: "Enabled" | "Suspended" };

// A few keys with common prefixes, and characters that UTF-16 and UTF-8 sort differently.
const key = fc.constantFrom("a", "a/", "a/b", "a/b/c", "a/c", "b", "b/\uffff", "b/😀", "c/d");
const steps = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ type: fc.constant("put"), key, body: fc.string({ maxLength: 5 }) }),
    },
    { weight: 3, arbitrary: fc.record({ type: fc.constant("delete"), key }) },
    {
      weight: 4,
      arbitrary: fc.record({ type: fc.constant("deleteVersion"), key, pick: fc.nat(5) }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("copy"), from: key, to: key }) },
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constant("versioning"),
        state: fc.constantFrom("Enabled", "Suspended"),
      }),
    },
  ),
  { maxLength: 30 },
) as fc.Arbitrary<Step[]>;

test("versions, delete markers and listings match a simple model", async (context) => {
  const store = await makeStore(context);
  let bucketNumber = 0;
  const property = fc.asyncProperty(
    steps,
    fc.integer({ min: 1, max: 4 }),
    fc.constantFrom("", "a", "a/", "b/"),
    fc.constantFrom(undefined, "/"),
    async (list, pageSize, prefix, delimiter) => {
      bucketNumber += 1;
      const bucket = `model-${bucketNumber}`;
      await store.buckets.create({ bucket, owner, region: "r" });
      const model = new Model();
      for (const step of list) await run(store, bucket, model, step);
      await compareBodies(store, bucket, model);
      await compareVersions(store, bucket, model, pageSize, prefix, delimiter);
      await compareObjects(store, bucket, model, pageSize, prefix, delimiter);
      await emptyBucket(store, bucket);
      await store.buckets.delete(bucket);
    },
  );
  await fc.assert(property, { numRuns: 60 });
  assert.equal(store.readStats().objects, 0);
  assert.equal(store.readStats().storageBytes, 0);
});

async function run(store: Store, bucket: string, model: Model, step: Step): Promise<void> {
  switch (step.type) {
    case "put": {
      const { versionId } = await put(store, step.key, step.body, { bucket });
      assert.equal(versionId === "null", model.versioning !== "Enabled");
      model.put(step.key, versionId, step.body);
      return;
    }
    case "delete": {
      const result = await store.objects.delete({ bucket, key: step.key });
      assert.equal(result.deleteMarker, model.versioning !== "Unset");
      if (model.versioning === "Unset") model.remove(step.key, "null");
      else model.put(step.key, result.versionId ?? "", undefined);
      return;
    }
    case "deleteVersion": {
      const versions = model.keys.get(step.key) ?? [];
      const versionId = versions[step.pick % Math.max(1, versions.length)]?.id ?? "null";
      await store.objects.delete({ bucket, key: step.key, versionId });
      model.remove(step.key, versionId);
      return;
    }
    case "copy": {
      const body = model.keys.get(step.from)?.[0]?.body;
      const copy = store.copies.copy({
        source: { bucket, key: step.from },
        bucket,
        key: step.to,
        metadataDirective: "REPLACE",
        attributes: {},
      });
      if (body === undefined) await assert.rejects(copy, { code: "NoSuchKey" });
      else model.put(step.to, (await copy).versionId, body);
      return;
    }
    case "versioning":
      await store.buckets.setVersioning(bucket, step.state);
      model.versioning = step.state;
      return;
    default:
      step satisfies never;
  }
}

async function compareBodies(store: Store, bucket: string, model: Model): Promise<void> {
  for (const [name, versions] of model.keys) {
    const live = versions[0]?.body;
    if (live === undefined) {
      await assert.rejects(read(store, name, { bucket }), { code: "NoSuchKey" });
    } else {
      assert.equal((await read(store, name, { bucket })).toString(), live);
    }
    for (const { id, body } of versions) {
      const reading = read(store, name, { bucket, versionId: id });
      if (body === undefined) await assert.rejects(reading, { code: "MethodNotAllowed" });
      else assert.equal((await reading).toString(), body);
    }
  }
}

async function compareVersions(
  store: Store,
  bucket: string,
  model: Model,
  maxKeys: number,
  prefix: string,
  delimiter: string | undefined,
): Promise<void> {
  const expected: string[] = [];
  for (const [name, versions] of model.sorted()) {
    if (!name.startsWith(prefix)) continue;
    const common = findCommon(name, prefix, delimiter);
    if (common !== undefined) {
      if (expected.at(-1) !== common) expected.push(common);
      continue;
    }
    for (const [index, { id, body }] of versions.entries()) {
      expected.push(`${name} ${id} ${index === 0} ${body === undefined}`);
    }
  }
  const found: string[] = [];
  let after: VersionPosition | undefined;
  do {
    const page: ListVersionsResult = await store.objects.listVersions({
      bucket,
      maxKeys,
      prefix,
      ...(delimiter === undefined ? {} : { delimiter }),
      ...(after === undefined ? {} : { after }),
    });
    const rows = [
      ...page.versions.map((row): [string, string] => [
        row.key,
        `${row.key} ${row.versionId} ${row.isLatest} ${row.isDeleteMarker}`,
      ]),
      ...page.commonPrefixes.map((value): [string, string] => [value, value]),
    ].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    assert.ok(rows.length <= maxKeys);
    found.push(...rows.map(([, text]) => text));
    assert.equal(page.isTruncated, page.next !== undefined);
    after = page.next;
  } while (after !== undefined);
  assert.deepEqual(found, expected);
}

async function compareObjects(
  store: Store,
  bucket: string,
  model: Model,
  maxKeys: number,
  prefix: string,
  delimiter: string | undefined,
): Promise<void> {
  const expected: string[] = [];
  for (const [name] of model.live()) {
    if (!name.startsWith(prefix)) continue;
    const entry = findCommon(name, prefix, delimiter) ?? name;
    if (expected.at(-1) !== entry) expected.push(entry);
  }
  const found: string[] = [];
  let after: VersionPosition | undefined;
  do {
    const page = await store.objects.list({
      bucket,
      maxKeys,
      prefix,
      ...(delimiter === undefined ? {} : { delimiter }),
      ...(after === undefined ? {} : { after }),
    });
    const rows = [...page.objects.map((object) => object.key), ...page.commonPrefixes];
    assert.ok(rows.length <= maxKeys);
    found.push(...rows.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
    assert.equal(page.isTruncated, page.next !== undefined);
    after = page.next;
  } while (after !== undefined);
  assert.deepEqual(found, expected);
}

function findCommon(name: string, prefix: string, delimiter: string | undefined) {
  const at = delimiter === undefined ? -1 : name.indexOf(delimiter, prefix.length);
  return at < 0 ? undefined : name.slice(0, at + 1);
}

// As clients do: list a page, delete it, continue after its last key, although that key is gone.
async function emptyBucket(store: Store, bucket: string): Promise<void> {
  let after: VersionPosition | undefined;
  do {
    const page: ListVersionsResult = await store.objects.listVersions({
      bucket,
      maxKeys: 3,
      ...(after === undefined ? {} : { after }),
    });
    await store.objects.deleteMany(
      page.versions.map((row) => ({ bucket, key: row.key, versionId: row.versionId })),
    );
    after = page.next;
  } while (after !== undefined);
}
