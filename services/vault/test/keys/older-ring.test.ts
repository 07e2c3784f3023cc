// Keys that are not there, or are taken away in the middle: errors in S3's form for their objects alone, and nothing is lost.
import assert from "node:assert/strict";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { defer, makeBytes, makeStore, put, read } from "../store/fixture.ts";
import { openRig, openRing } from "./rig.ts";

const LARGE = makeBytes(2_500_000);

test("under an older key ring, objects of newer versions are 503, others are read, and the newer one brings all back", async (context) => {
  const { folder, ring, store } = await openRig(context);
  const { id: keyId } = await ring.create({ name: "one", description: "", source: "local" });
  const encryption = { type: "SSE-KMS", keyId } as const;
  await put(store, "before", "before", { encryption });
  await put(store, "stored", "stored", { encryption: { type: "SSE-S3" } });
  const [access, older, newer] = ["access", "older", "newer"].map((name) => join(folder, name));
  cpSync(access!, older!, { recursive: true });
  await ring.rotateNamed(keyId);
  const { id: second } = await ring.create({ name: "two", description: "", source: "local" });
  await put(store, "after", LARGE, { encryption });
  await put(store, "second", "second", { encryption: { type: "SSE-KMS", keyId: second } });
  await store.close();
  const use = async (from: string) => {
    rmSync(access!, { recursive: true });
    cpSync(from, access!, { recursive: true });
    const opened = await openRing(folder);
    return makeStore(context, { dataDir: folder, keys: opened });
  };
  cpSync(access!, newer!, { recursive: true });
  const behind = await use(older!);
  defer(context, () => behind.close());
  for (const key of ["before", "stored"]) assert.equal((await read(behind, key)).toString(), key);
  await assert.rejects(read(behind, "after"), { code: "ServiceUnavailable" });
  await assert.rejects(read(behind, "second"), { code: "ServiceUnavailable" });
  const { objects } = await behind.objects.list({ bucket: "bucket", maxKeys: 10 });
  assert.deepEqual(
    objects.map(({ key }) => key),
    ["after", "before", "second", "stored"],
  );
  await behind.maintenance.rewrap();
  assert.deepEqual((await behind.maintenance.scrub()).damaged, []);
  await behind.close();
  const back = await use(newer!);
  defer(context, () => back.close());
  for (const key of ["before", "stored", "second"])
    assert.equal((await read(back, key)).toString(), key);
  assert.ok((await read(back, "after")).equals(LARGE));
});

test("a key that is disabled in the middle of a copy to another key: the copy is whole, or is not there", async (context) => {
  const { ring, store } = await openRig(context);
  const [from, to] = await Promise.all(
    ["from", "to"].map((name) => ring.create({ name, description: "", source: "local" })),
  );
  await put(store, "source", LARGE, { encryption: { type: "SSE-KMS", keyId: from!.id } });
  const encryption = { type: "SSE-KMS", keyId: to!.id } as const;
  const outcomes = new Set<string>();
  // After some turns of the event loop: before its first byte, and while bytes are on their way.
  for (const disabled of [from!, to!]) {
    for (let turns = 0; turns < 12; turns += 1) {
      const target = { bucket: "bucket", key: `${disabled.name}-${turns}` };
      const source = { bucket: "bucket", key: "source" };
      const copying = store.copies.copy({ source, ...target, attributes: { encryption } }).then(
        () => "whole",
        (error: { code: string }) => error.code,
      );
      for (let turn = 0; turn < turns * 2; turn += 1) await new Promise(setImmediate);
      ring.setState(disabled.id, "disabled");
      const outcome = await copying;
      ring.setState(disabled.id, "enabled");
      outcomes.add(outcome);
      if (outcome === "whole") assert.ok((await read(store, target.key)).equals(LARGE));
      else {
        assert.equal(outcome, "KMS.DisabledException");
        await assert.rejects(read(store, target.key), { code: "NoSuchKey" });
      }
    }
  }
  assert.ok(outcomes.has("whole"));
});
