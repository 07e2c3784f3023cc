// The file of keys and the master key that opens it.
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startSecretService } from "@platform/testing/secret-service";
import { SecretService } from "@platform/kernel/secret-service";
import { deriveBoxKey, identifyStore, SecretBox } from "../../src/access/secret-box.ts";
import { KeyRing } from "../../src/keys/key-ring.ts";
import {
  createSecretSource,
  createSettingSource,
  makeKey,
  type MasterSource,
} from "../../src/keys/master-key.ts";
import { defer, makeFolder } from "../store/fixture.ts";
import { describeRing, makeSecret, openRing } from "./rig.ts";

const locate = (folder: string, name: string) => join(folder, "access", name);

test("a store of an earlier version keeps its keys, its identity and its secrets", async (context) => {
  const folder = makeFolder(context);
  const master = makeKey();
  mkdirSync(join(folder, "access"));
  writeFileSync(locate(folder, "master.key"), master, { mode: 0o600 });
  const ring = await openRing(folder);
  assert.equal(ring.owner, identifyStore(master));
  assert.deepEqual(ring.webhookKey, master);
  const before = new SecretBox(() => [deriveBoxKey(master)]).seal("secret", "name");
  assert.equal(new SecretBox(ring.listBoxKeys).open(before, "name"), "secret");
});

test("a change of the master key keeps keys, identity and webhooks, and the former key opens nothing", async (context) => {
  const folder = makeFolder(context);
  const ring = await openRing(folder);
  const { id } = await ring.create({ name: "one", description: "", source: "local" });
  const box = new SecretBox(ring.listBoxKeys);
  const sealed = box.seal("secret", "name");
  const former = readFileSync(locate(folder, "master.key"));
  const { owner, webhookKey } = ring;
  const storage = ring.current();
  await ring.rotateMaster();
  assert.notDeepEqual(readFileSync(locate(folder, "master.key")), former);
  const again = await openRing(folder);
  assert.equal(again.owner, owner);
  assert.deepEqual(again.webhookKey, webhookKey);
  assert.deepEqual(again.named.current(id), ring.named.current(id));
  // It was derived from the former master key, and so a new one replaces it.
  assert.notEqual(again.current().id, storage.id);
  assert.deepEqual(again.find(storage.id), storage.key);
  const renewed = new SecretBox(again.listBoxKeys).renew(sealed, "name");
  assert.ok(renewed);
  const old = new SecretBox(() => [deriveBoxKey(former)]);
  assert.throws(() => old.open(renewed, "name"));
  const master = createSettingSource(former.toString("base64"));
  await assert.rejects(openRing(folder, { master }), /the master key is not the one/);
});

test("killed at every step of a change of the master key, the store opens and has all keys", async (context) => {
  for (const step of ["before the key", "after the key"] as const) {
    const folder = makeFolder(context);
    const options = describeRing(folder);
    const source = options.master;
    // The process ends when it installs the key: before, or after it did.
    const master: MasterSource = {
      kind: "file",
      read: () => source.read(),
      install: (key) => {
        if (step === "after the key") source.install!(key);
        throw new Error("killed");
      },
    };
    const ring = await KeyRing.open({ ...options, master }, true);
    const { id } = await ring.create({ name: "one", description: "", source: "local" });
    const kek = ring.named.current(id);
    await assert.rejects(ring.rotateMaster(), /killed/);
    const again = await openRing(folder);
    assert.deepEqual(again.named.current(id), kek, step);
    // The change is complete, or undone: the key that is not in place opens nothing.
    const third = await openRing(folder);
    assert.deepEqual(third.named.current(id), kek, step);
    await third.rotateMaster();
    assert.deepEqual((await openRing(folder)).named.current(id), kek, step);
  }
});

test("a key in the configuration: both open the store until it was started with the next one", async (context) => {
  const folder = makeFolder(context);
  const [first, second] = [makeSecret(), makeSecret()];
  const at = (text: string) => openRing(folder, { master: createSettingSource(text) });
  const ring = await at(first);
  await assert.rejects(ring.rotateMaster(), { code: "OperationAborted" });
  await assert.rejects(ring.rotateMaster(Buffer.from(first, "base64")), /the same/);
  await ring.rotateMaster(Buffer.from(second, "base64"));
  const inspect = (text: string) =>
    KeyRing.open({ ...describeRing(folder), master: createSettingSource(text) }, false);
  for (const text of [first, second]) assert.equal((await inspect(text)).owner, ring.owner);
  assert.equal((await at(second)).owner, ring.owner);
  await assert.rejects(at(first), /the master key is not the one/);
});

test("a master key in a secret service: a new version is taken over, by the command or by a start", async (context) => {
  const folder = makeFolder(context);
  const service = await startSecretService("token");
  defer(context, () => service.close());
  const client = new SecretService({ url: service.url, token: () => "token" });
  const master = createSecretSource(client, "secret", "storage/master-key");
  const open = () => openRing(folder, { master });
  await assert.rejects(open(), /secret\/storage\/master-key does not exist/);
  for (const bad of ["", "short", Buffer.alloc(31).toString("base64")]) {
    service.write("storage/master-key", { key: bad });
    await assert.rejects(open(), /is not 32 bytes in base64/);
  }
  service.write("storage/master-key", { key: makeSecret() });
  const ring = await open();
  const { owner } = ring;
  await assert.rejects(ring.rotateMaster(), /no newer version/);
  service.write("storage/master-key", { key: makeSecret() });
  await ring.rotateMaster();
  assert.deepEqual([ring.master.source, ring.master.version], ["secret_service", 5]);
  service.destroy("storage/master-key", 4);
  assert.equal((await open()).owner, owner);
  // Written while the store was stopped: the version before opens the file.
  service.write("storage/master-key", { key: makeSecret() });
  assert.equal((await open()).master.version, 6);
  service.destroy("storage/master-key", 5);
  assert.equal((await open()).owner, owner);
  service.write("storage/master-key", { key: makeSecret() });
  service.destroy("storage/master-key", 6);
  await assert.rejects(open(), /the master key is not the one/);
  service.fail({ status: 503, body: "sealed" });
  await assert.rejects(open(), /503/);
});

test("a damaged copy of the file is replaced from the other; with both damaged the start is refused", async (context) => {
  const folder = makeFolder(context);
  const ring = await openRing(folder);
  const { id } = await ring.create({ name: "one", description: "", source: "local" });
  const kek = ring.named.current(id);
  const [main, copy] = ["encryption-keys.json", "encryption-keys-copy.json"].map((name) =>
    locate(folder, name),
  ) as [string, string];
  const text = readFileSync(main, "utf8");
  for (const path of [main, copy]) {
    writeFileSync(path, text.replace(/"sealed":"(.)/, '"sealed":"!$1'));
    assert.deepEqual((await openRing(folder)).named.current(id), kek);
  }
  for (const path of [main, copy]) writeFileSync(path, "{}");
  await assert.rejects(openRing(folder), /cannot be read/);
  assert.equal(readFileSync(main, "utf8"), "{}");
});

test("keys of a backup open with its own master key, and named ones are added when they are needed", async (context) => {
  const [theirs, ours] = [makeFolder(context), makeFolder(context)];
  const saved = await openRing(theirs);
  const { id } = await saved.create({ name: "one", description: "", source: "local" });
  const unused = await saved.create({ name: "two", description: "", source: "local" });
  saved.rotateStorage();
  const [former] = saved.rotation.listFormer();
  const ring = await openRing(ours);
  await ring.create({ name: "one", description: "", source: "local" });
  const file = readFileSync(locate(theirs, "encryption-keys.json"));
  const master = readFileSync(locate(theirs, "master.key"));
  const keys = await ring.openSaved(master, file);
  assert.deepEqual(keys.find(former!), saved.find(former!));
  assert.equal(ring.rotation.currentOf(id), undefined);
  const kek = saved.named.current(id);
  assert.deepEqual(keys.find(kek.id), kek.key);
  assert.deepEqual(ring.named.current(id), kek);
  assert.equal(ring.get(id)!.name, `one-${id.slice(0, 8)}`);
  assert.equal(ring.get(unused.id), undefined);
  const without = await ring.openSaved(undefined, file);
  assert.equal(without.find(former!), undefined);
  const earlier = await ring.openSaved(master, undefined);
  assert.deepEqual(earlier.find(former!), saved.find(former!));
});

test("without the master key, a store with a file of keys is not opened with a new one", async (context) => {
  const folder = makeFolder(context);
  await openRing(folder);
  copyFileSync(locate(folder, "master.key"), join(folder, "saved"));
  rmSync(locate(folder, "master.key"));
  await assert.rejects(openRing(folder), /the master key is not the one/);
});
