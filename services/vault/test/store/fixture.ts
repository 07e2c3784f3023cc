// Opens stores in temporary folders, with short forms of put and read.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { GetRequest, PutRequest, PutResult } from "../../src/model/object.ts";
import { openStore, type StoreOptions } from "../../src/open-store.ts";
import type { Store } from "../../src/object-store.ts";

export const owner = { id: "owner-id", displayName: "owner" };

/** A new folder, removed after the test. */
export function makeFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "vault-"));
  defer(context, () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** As `context.after`, but last in, first out. */
export function defer(context: TestContext, work: () => unknown): void {
  let works = deferred.get(context);
  if (works === undefined) {
    const list: (() => unknown)[] = [];
    works = list;
    deferred.set(context, list);
    context.after(async () => {
      for (const next of list.toReversed()) await next();
    });
  }
  works.push(work);
}

const deferred = new WeakMap<TestContext, (() => unknown)[]>();

/** A store with a bucket `b`, closed after the test. */
export async function makeStore(
  context: TestContext,
  options: Partial<StoreOptions> = {},
): Promise<Store> {
  const store = await openStore({ dataDir: makeFolder(context), reserveBytes: 0, ...options });
  defer(context, () => store.close());
  if (store.buckets.find("bucket") === undefined) {
    await store.buckets.create({ bucket: "bucket", owner, region: "us-east-1" });
  }
  return store;
}

/** Puts a body in chunks of 100 000 bytes. */
export async function put(
  store: Store,
  key: string,
  body: string | Uint8Array,
  more: Partial<PutRequest> = {},
): Promise<PutResult> {
  const bytes = Buffer.from(body);
  const upload = store.objects.beginPut({
    bucket: "bucket",
    key,
    contentLength: bytes.length,
    ...more,
  });
  try {
    for (let at = 0; at < bytes.length; at += 100_000) {
      await upload.write(bytes.subarray(at, at + 100_000));
    }
    await upload.finish();
    return await upload.commit();
  } catch (error) {
    await upload.abort();
    throw error;
  }
}

/** Reads a whole body. */
export async function read(
  store: Store,
  key: string,
  more: Partial<GetRequest> = {},
): Promise<Buffer> {
  const reader = await store.objects.get({ bucket: "bucket", key, ...more });
  const chunks: Buffer[] = [];
  for await (const chunk of reader.body.chunks()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Pseudorandom bytes that are the same each time. */
export function makeBytes(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed >>> 0 || 1;
  for (let at = 0; at < length; at += 1) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}
