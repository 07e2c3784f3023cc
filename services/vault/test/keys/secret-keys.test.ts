// Named keys in a secret service that answers, refuses, is slow, sealed, or lies.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { createLogger } from "@platform/kernel/log";
import { SecretService } from "@platform/kernel/secret-service";
import { createManualClock, systemClock } from "@platform/kernel/time";
import { makeCertificate, opensslSkip } from "@platform/testing/certificates";
import { startSecretService } from "@platform/testing/secret-service";
import { waitFor } from "@platform/testing/wait";
import { SecretKeys } from "../../src/keys/secret-keys.ts";
import { defer, makeFolder, makeStore, put, read } from "../store/fixture.ts";
import { makeSecret, openRing } from "./rig.ts";

const DAY_MS = 86_400_000;
const log = createLogger({ service: "vault", level: "error", write: () => undefined });

async function openService(context: TestContext) {
  const service = await startSecretService("token");
  defer(context, () => service.close());
  const folder = makeFolder(context);
  const clock = createManualClock();
  const open = async () => {
    const client = new SecretService({ url: service.url, token: () => "token", timeoutMs: 300 });
    const options = { service: client, mount: "secret", path: "keys", cacheMs: DAY_MS, clock, log };
    const secrets = new SecretKeys(options);
    return { ring: await openRing(folder, { secrets, clock }), secrets };
  };
  return { service, folder, clock, open };
}

const source = "secret_service" as const;

test("a key in the service encrypts, survives restarts, and rotates to the service's next version", async (context) => {
  const { service, folder, open } = await openService(context);
  service.write("keys/one", { key: makeSecret() });
  const { ring } = await open();
  const { id } = await ring.create({ name: "one", description: "", source });
  const store = await makeStore(context, { dataDir: folder, keys: ring });
  await put(store, "key", "text", { encryption: { type: "SSE-KMS", keyId: id } });
  await assert.rejects(ring.rotateNamed(id), /no newer version/);
  service.write("keys/one", { key: makeSecret() });
  await ring.rotateNamed(id);
  // The former version is read by its number.
  assert.equal((await read(store, "key")).toString(), "text");
  assert.equal((await store.maintenance.rewrap()).rewrapped, 1);
  assert.equal((await store.maintenance.rewrap()).retired, 0);
  assert.deepEqual(ring.rotation.listFormer(), []);
  await store.close();
  const again = await makeStore(context, { dataDir: folder, keys: (await open()).ring });
  assert.equal((await read(again, "key")).toString(), "text");
});

test("while the service is away, cached keys serve for their time, then objects are answered with 503", async (context) => {
  const { service, folder, clock, open } = await openService(context);
  service.write("keys/one", { key: makeSecret() });
  const { ring, secrets } = await open();
  const { id } = await ring.create({ name: "one", description: "", source });
  const store = await makeStore(context, { dataDir: folder, keys: ring });
  const encryption = { type: "SSE-KMS", keyId: id } as const;
  await put(store, "key", "text", { encryption });
  await put(store, "plain", "text");
  service.fail({ status: 503, body: '{"errors":["Vault is sealed"]}' });
  clock.advance(DAY_MS);
  await ring.refresh();
  assert.match(secrets.fault ?? "", /503/);
  assert.equal((await read(store, "key")).toString(), "text");
  clock.advance(1);
  await assert.rejects(read(store, "key"), { code: "ServiceUnavailable" });
  await assert.rejects(put(store, "new", "x", { encryption }), { code: "ServiceUnavailable" });
  assert.equal((await read(store, "plain")).toString(), "text");
  assert.equal((await store.objects.head({ bucket: "bucket", key: "key" })).contentLength, 4);
  service.fail(undefined);
  await ring.refresh();
  assert.equal(secrets.fault, undefined);
  assert.equal((await read(store, "key")).toString(), "text");
});

test("a service that refuses the token, is slow, lies or answers nonsense changes nothing, and is named", async (context) => {
  const { service, folder, open } = await openService(context);
  service.write("keys/one", { key: makeSecret() });
  const { ring, secrets } = await open();
  const { id } = await ring.create({ name: "one", description: "", source });
  const store = await makeStore(context, { dataDir: folder, keys: ring });
  await put(store, "key", "text", { encryption: { type: "SSE-KMS", keyId: id } });
  const metadata = { version: 1 };
  const faults: [string, { status: number; body: string }, RegExp][] = [
    ["403 after its token was rotated", { status: 403, body: "{}" }, /token is refused/],
    ["no JSON", { status: 200, body: "<html>" }, /not JSON/],
    ["another form", { status: 200, body: "[]" }, /KV v2/],
    [
      "another version",
      {
        status: 200,
        body: JSON.stringify({ data: { data: { key: makeSecret() }, metadata: { version: 2 } } }),
      },
      /version 2 instead of 1/,
    ],
    [
      "another key",
      { status: 200, body: JSON.stringify({ data: { data: { key: makeSecret() }, metadata } }) },
      /another key than before/,
    ],
    [
      "an empty key",
      { status: 200, body: JSON.stringify({ data: { data: { key: "" }, metadata } }) },
      /32 bytes/,
    ],
    ["too much", { status: 200, body: "x".repeat(3 * 1024 ** 2) }, /exceeds/],
    ["gone", { status: 404, body: "{}" }, /does not exist/],
  ];
  for (const [name, answer, reason] of faults) {
    service.fail(answer);
    await ring.refresh();
    assert.match(secrets.fault ?? "", reason, name);
    assert.equal((await read(store, "key")).toString(), "text", name);
    const created = ring.create({ name: "two", description: "", source });
    if (name !== "another version" && name !== "another key")
      await assert.rejects(created, { name: "StoreError" }, name);
    else await created.then((key) => ring.planDeletion(key.id, 7)).catch(() => undefined);
  }
  service.fail(undefined);
  service.delay(600);
  await ring.refresh();
  assert.notEqual(secrets.fault, undefined);
  assert.equal((await read(store, "key")).toString(), "text");
});

test("a token is renewed at half of its life, and a token that replaces it is looked up", async (context) => {
  const { service, clock, open } = await openService(context);
  const tokens = (): string[] =>
    service.requests.splice(0).flatMap((line) => /auth\/token\/(\S+)/.exec(line)?.[1] ?? []);
  service.live(100, true);
  // No key is in the service: the master key may be.
  const { ring, secrets } = await open();
  const refresh = async (ms: number): Promise<string[]> => {
    clock.advance(ms);
    await ring.refresh();
    return tokens();
  };
  assert.deepEqual(tokens(), ["lookup-self"]);
  assert.deepEqual(await refresh(49_999), []);
  assert.deepEqual(await refresh(1), ["renew-self", "lookup-self"]);
  assert.deepEqual(await refresh(49_999), []);
  service.accept("another token");
  assert.deepEqual(await refresh(1), ["renew-self"]);
  assert.match(secrets.fault ?? "", /the token cannot be renewed.*403/);
  service.accept("token");
  service.live(0, false);
  assert.deepEqual(await refresh(1), ["lookup-self"]);
  assert.equal(secrets.fault, undefined);
  assert.deepEqual(await refresh(DAY_MS), []);
});

test("a token that lives a second is renewed in time, not more often, and no more when that is stopped", async (context) => {
  const service = await startSecretService("token");
  defer(context, () => service.close());
  service.live(1, true);
  const client = new SecretService({ url: service.url, token: () => "token", timeoutMs: 5_000 });
  const options = { service: client, mount: "secret", path: "keys", cacheMs: DAY_MS, log };
  const secrets = new SecretKeys({ ...options, clock: systemClock });
  await secrets.load([]);
  const begunMs = performance.now();
  const stop = secrets.followToken();
  const countRenewals = (): number =>
    service.requests.filter((line) => line.includes("renew-self")).length;
  await waitFor(() => countRenewals() >= 3, "three renewals");
  const elapsedMs = performance.now() - begunMs;
  assert.ok(elapsedMs >= 1_500, `three renewals took ${elapsedMs} ms`);
  service.accept("another token");
  await waitFor(() => secrets.fault !== undefined, "the refusal");
  const refused = service.requests.length;
  await wait(1_200);
  assert.equal(service.requests.length, refused, "a refused token is not asked for at once");
  stop();
});

test(
  "the service is trusted by its authority, and no other one is",
  { skip: opensslSkip },
  async (context) => {
    const folder = makeFolder(context);
    const own = makeCertificate(folder, "own", { names: "IP:127.0.0.1" });
    const other = makeCertificate(folder, "other");
    const tls = { cert: readFileSync(own.cert, "utf8"), key: readFileSync(own.key, "utf8") };
    const service = await startSecretService("token", 0, tls);
    defer(context, () => service.close());
    service.write("keys/one", { key: makeSecret() });
    const open = async (ca: string | undefined) => {
      const client = new SecretService({ url: service.url, token: () => "token", ca });
      const clock = createManualClock();
      const options = {
        service: client,
        mount: "secret",
        path: "keys",
        cacheMs: DAY_MS,
        clock,
        log,
      };
      const secrets = new SecretKeys(options);
      return { ring: await openRing(makeFolder(context), { secrets, clock }), secrets };
    };
    const trusted = await open(tls.cert);
    await trusted.ring.create({ name: "one", description: "", source });
    assert.equal(trusted.secrets.fault, undefined);
    for (const ca of [readFileSync(other.cert, "utf8"), undefined]) {
      const { ring, secrets } = await open(ca);
      await assert.rejects(ring.create({ name: "one", description: "", source }), {
        code: "ServiceUnavailable",
        message: /cannot be used: .*certificate/,
      });
      assert.match(secrets.fault ?? "", /certificate/);
    }
  },
);

test("an answer of 2 GB is left after its first MiBs", async (context) => {
  const block = Buffer.alloc(1024 ** 2, "x");
  let sent = 0;
  const server = createServer((_, answer) => {
    answer.writeHead(200, { "content-length": 2_000 * block.length });
    const write = (): void => {
      while (!answer.destroyed && sent < 2_000) {
        sent += 1;
        if (!answer.write(block)) {
          answer.once("drain", write);
          return;
        }
      }
    };
    write();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  defer(context, () => server.close());
  const { port } = server.address() as AddressInfo;
  const client = new SecretService({ url: `http://127.0.0.1:${port}`, token: () => "token" });
  await assert.rejects(client.read("secret", "keys/one"), { message: /exceeds/ });
  assert.ok(sent < 100, `${sent} MiB were sent`);
});

test("a start without the service knows its keys as unavailable, and has them when it is back", async (context) => {
  const { service, folder, open } = await openService(context);
  service.write("keys/one", { key: makeSecret() });
  const first = await open();
  const { id } = await first.ring.create({ name: "one", description: "", source });
  const store = await makeStore(context, { dataDir: folder, keys: first.ring });
  await put(store, "key", "text", { encryption: { type: "SSE-KMS", keyId: id } });
  await store.close();
  service.fail({ status: 503, body: "" });
  const { ring, secrets } = await open();
  const again = await makeStore(context, { dataDir: folder, keys: ring });
  const [kek] = again.keys.listUsed();
  assert.deepEqual(
    [ring.has(kek!), ring.isLocal(kek!), secrets.isThere(kek!)],
    [true, false, false],
  );
  assert.deepEqual(again.keys.findBuckets([kek!]), ["bucket"]);
  await assert.rejects(read(again, "key"), { code: "ServiceUnavailable" });
  service.fail(undefined);
  await ring.refresh();
  assert.equal((await read(again, "key")).toString(), "text");
});
