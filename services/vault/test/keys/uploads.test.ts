// Uploads in parts under a named key that rotates, is disabled, or is planned for deletion meanwhile.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Store } from "../../src/object-store.ts";
import { makeBytes, makeStore, owner, put, read } from "../store/fixture.ts";
import { type KeyRig, openRig, openRing } from "./rig.ts";

const DAY_MS = 86_400_000;
const CONTEXT = '{"order":"7"}';
const BODIES = [makeBytes(5_000, 1), makeBytes(200_000, 2), makeBytes(5_000, 3)];
const WHOLE = Buffer.concat(BODIES);

interface Begun extends KeyRig {
  keyId: string;
  address: { bucket: string; key: string; uploadId: string };
}

async function begin(context: TestContext): Promise<Begun> {
  const rig = await openRig(context, { partBytesMin: 1 });
  const { id: keyId } = await rig.ring.create({ name: "one", description: "", source: "local" });
  const encryption = { type: "SSE-KMS", keyId, context: CONTEXT } as const;
  const target = { bucket: "bucket", key: "large" };
  const { uploadId } = await rig.store.uploads.create({ ...target, encryption, owner });
  return { ...rig, keyId, address: { ...target, uploadId } };
}

async function putPart(store: Store, { address }: Begun, partNumber: number): Promise<void> {
  const body = BODIES[partNumber - 1]!;
  const upload = store.uploads.beginPart({ ...address, partNumber, contentLength: body.length });
  await upload.write(body);
  await upload.commit();
}

async function complete(store: Store, { address }: Begun): Promise<void> {
  const { parts } = await store.uploads.listParts(address);
  await store.uploads.complete({
    ...address,
    parts: parts.map(({ partNumber, etag }) => ({ partNumber, etag })),
  });
}

test("parts before and after a rotation make one object, and the former version goes when its heads were written again", async (context) => {
  const begun = await begin(context);
  const { folder, ring, store, keyId } = begun;
  await putPart(store, begun, 1);
  await putPart(store, begun, 2);
  const former = ring.named.current(keyId).id;
  await ring.rotateNamed(keyId);
  assert.equal((await store.maintenance.rewrap()).rewrapped, 2, "parts of open uploads, too");
  assert.equal(store.keys.countUse(former, 10).blobs, 0);
  await store.close();
  const again = await makeStore(context, {
    dataDir: folder,
    keys: await openRing(folder),
    partBytesMin: 1,
  });
  await putPart(again, begun, 3);
  await complete(again, begun);
  assert.ok((await read(again, "large")).equals(WHOLE));
  const { encryption } = await again.objects.describe({ bucket: "bucket", key: "large" });
  assert.deepEqual(encryption, { type: "SSE-KMS", keyId, context: CONTEXT });
  await again.maintenance.rewriteHeads();
  await again.maintenance.rewrap();
  assert.deepEqual(again.keys.countUse(former, 10), { blobs: 0, heads: 0 });
  assert.ok((await read(again, "large")).equals(WHOLE));
});

test("a key that is disabled between parts refuses the next one and the end; enabled again, nothing is lost", async (context) => {
  const begun = await begin(context);
  const { ring, store, keyId, address } = begun;
  await putPart(store, begun, 1);
  await put(store, "plain", BODIES[1]!);
  const part = { ...address, partNumber: 3, contentLength: 5_000 };
  const running = store.uploads.beginPart(part);
  await running.write(BODIES[2]!.subarray(0, 100));
  ring.setState(keyId, "disabled");
  const refused = { code: "KMS.DisabledException" };
  assert.throws(() => store.uploads.beginPart({ ...part, partNumber: 2 }), refused);
  const source = { bucket: "bucket", key: "plain" };
  await assert.rejects(store.uploads.copyPart({ ...address, partNumber: 2, source }), refused);
  // The key of a part is made with its first byte.
  await running.write(BODIES[2]!.subarray(100));
  await running.commit();
  await assert.rejects(complete(store, begun), refused);
  await ring.rotateNamed(keyId);
  assert.equal((await store.maintenance.rewrap()).rewrapped, 2, "a disabled key is rotated");
  ring.setState(keyId, "enabled");
  await store.uploads.copyPart({ ...address, partNumber: 2, source });
  await complete(store, begun);
  assert.ok((await read(store, "large")).equals(WHOLE));
});

test("a key whose deletion is due stays while an upload has parts under it, and goes with the upload", async (context) => {
  const begun = await begin(context);
  const { ring, store, keyId, clock, address } = begun;
  await putPart(store, begun, 1);
  ring.planDeletion(keyId, 7);
  clock.advance(8 * DAY_MS);
  assert.equal((await store.maintenance.rewrap()).deleted, 0);
  assert.throws(() => store.uploads.beginPart({ ...address, partNumber: 2, contentLength: 1 }), {
    code: "KMS.KMSInvalidStateException",
  });
  await store.uploads.abort(address);
  await store.maintenance.collect();
  assert.equal((await store.maintenance.rewrap()).deleted, 1);
  assert.equal(ring.get("one"), undefined);
});
