// Each part of storage starts alone, on the parts below it.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { openPartsAlone } from "@platform/testing/parts";
import { openAdmin } from "../src/assembly/admin.ts";
import { openCallers } from "../src/assembly/callers.ts";
import { openDelivery } from "../src/assembly/delivery.ts";
import { openObjects, restrictAddress } from "../src/assembly/objects.ts";
import { openStorage } from "../src/assembly/storage.ts";
import { vaultDefinition, type VaultConfig } from "../src/config.ts";
import { LogOutput } from "../src/log/log-output.ts";

const output = new LogOutput("json");

function openParts(t: TestContext, env: Readonly<Record<string, string>> = {}) {
  return openPartsAlone<VaultConfig>(t, vaultDefinition, {
    env: (folder) => ({
      PLATFORM_VAULT_ADDR: "127.0.0.1:0",
      PLATFORM_VAULT_ADMIN_ADDR: "127.0.0.1:0",
      PLATFORM_VAULT_DATA_DIR: join(folder, "data"),
      PLATFORM_VAULT_DEFAULT_BUCKETS: "photos",
      STORE_ACCESS_KEY_ID: "parts",
      STORE_SECRET_ACCESS_KEY: "parts-secret-key",
      ...env,
    }),
  });
}

test("storage: the store holds the configured buckets, and without its master key it is refused", async (t) => {
  const { config, service, lifecycle } = openParts(t);
  const { store, owner } = await openStorage(config, service);
  assert.equal(store.buckets.find("photos")?.owner.id, owner.id);
  await lifecycle.close();
  rmSync(join(config.data_dir, "access", "master.key"));
  await assert.rejects(openStorage(config, service), /master\.key/);
});

test("delivery: events of users do not leave for private addresses", async (t) => {
  const { config, service } = openParts(t);
  const { eventPolicy } = openDelivery(config, service, await openStorage(config, service));
  assert.equal(eventPolicy.isAllowed("10.0.0.1"), false);
  assert.equal(eventPolicy.isAllowed("9.9.9.9"), true);
});

test("callers: without an issuer nobody exchanges a token for keys", async (t) => {
  const { config, service, lifecycle } = openParts(t);
  const { tokens } = openCallers(config, service, await openStorage(config, service));
  assert.equal(tokens, undefined);
  assert.deepEqual(lifecycle.listeners, []);
});

test("objects: S3 answers while the admin API does not listen", async (t) => {
  const { config, service, lifecycle } = openParts(t);
  const storage = await openStorage(config, service);
  const delivery = openDelivery(config, service, storage);
  const callers = openCallers(config, service, storage);
  const { port } = await openObjects(config, service, output, storage, delivery, callers);
  assert.equal(lifecycle.listeners.length, 1);
  const answer = await fetch(`http://127.0.0.1:${port}/photos`);
  assert.equal(answer.status, 403);
  assert.match(await answer.text(), /<Code>AccessDenied<\/Code>/);
});

test("objects: the built-in credentials are for this machine only", (t) => {
  const { config } = openParts(t, {
    STORE_ACCESS_KEY_ID: "",
    STORE_SECRET_ACCESS_KEY: "",
  });
  assert.deepEqual(restrictAddress({ host: undefined, port: 9000 }, config), {
    host: "127.0.0.1",
    port: 9000,
  });
  assert.throws(() => restrictAddress({ host: "0.0.0.0", port: 9000 }, config), /built-in/);
});

test("admin: its listener is one of its own, and refuses callers without credentials", async (t) => {
  const { config, service, lifecycle } = openParts(t);
  const storage = await openStorage(config, service);
  const delivery = openDelivery(config, service, storage);
  const callers = openCallers(config, service, storage);
  const objects = await openObjects(config, service, output, storage, delivery, callers);
  const startedMs = service.clock.monotonicMs();
  await openAdmin(config, service, startedMs, storage, delivery, callers, objects);
  const { port } = lifecycle.listeners.find(({ name }) => name === "admin")!;
  assert.equal((await fetch(`http://127.0.0.1:${port}/api/v1/users`)).status, 401);
});
