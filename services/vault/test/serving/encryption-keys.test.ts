// Keys of a running service: their API, the master key online and on the command line, starts without keys, backups.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { startSecretService } from "@platform/testing/secret-service";
import { vaultRoot } from "@platform/testing/staged-vault";
import { waitFor } from "@platform/testing/wait";
import { back, restore } from "../backup/rig.ts";
import { makeSecret } from "../keys/rig.ts";
import { addReader, callJson, readJson } from "./json-api.ts";
import { S3TestClient } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";

const PROGRAM = fileURLToPath(new URL("../../../../bin/platform-vaultd.js", import.meta.url));
const SSE = "x-amz-server-side-encryption";
const KEYS = "/admin/encryption-keys";

interface Key {
  id: string;
  name: string;
  state: string;
  delete_at: string | null;
  versions: { id: string; objects: number; available: boolean }[];
}
interface Keys {
  items: Key[];
  sse_s3: { versions: { id: string }[] };
  master: { source: string; id: string };
}

const scratch = mkdtempSync(join(tmpdir(), "vault-keys-"));
let serving: Serving;
let service: Awaited<ReturnType<typeof startSecretService>>;

before(async () => {
  service = await startSecretService("token");
  service.write("storage/keys/far", { key: makeSecret() });
  const tokenFile = join(scratch, "token");
  writeFileSync(tokenFile, "token\n");
  serving = await serve({
    env: {
      PLATFORM_SECRET_URL: service.url,
      PLATFORM_VAULT_SECRET_TOKEN_FILE: tokenFile,
      PLATFORM_SECRET_TENANT_ID: "acme",
      PLATFORM_VAULT_BACKUP_DIR: scratch,
    },
  });
  await serving.s3.must("PUT", "/box");
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  await service.close();
  rmSync(scratch, { recursive: true, force: true });
});

const readKeys = () => readJson<Keys>(callJson(serving, "GET", KEYS));
const create = (body: object, status = 201) =>
  readJson<Key>(callJson(serving, "POST", KEYS, body), status);
const withKey = (name: string) => ({
  [SSE]: "aws:kms",
  [`${SSE}-aws-kms-key-id`]: `alias/${name}`,
});
const putUnder = (name: string, key: string, body = "text") =>
  serving.s3.must("PUT", `/box/${key}`, { body, headers: withKey(name) });

/** Runs a command of the program with the settings of the service. */
function runCommand(...args: string[]): Promise<{ code: number; out: string }> {
  const env = {
    ...process.env,
    STORE_ACCESS_KEY_ID: vaultRoot.accessKey,
    STORE_SECRET_ACCESS_KEY: vaultRoot.secretKey,
    PLATFORM_VAULT_DATA_DIR: serving.vault.dataDir,
    PLATFORM_SECRET_URL: service.url,
    PLATFORM_SECRET_API_KEY: "token",
  };
  const admin = `--admin-port=127.0.0.1:${serving.vault.adminPort}`;
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [PROGRAM, ...args, admin],
      { env, cwd: scratch },
      (error, out, err) => resolve({ code: Number(error?.code ?? 0), out: out + err }),
    );
  });
}

test("keys are made, shown, changed and planned to be deleted by administrators, by name and by id", async () => {
  const key = await create({ name: "one", description: "first" });
  assert.deepEqual([key.state, key.delete_at, key.versions.length], ["enabled", null, 1]);
  await create({ name: "one" }, 409);
  for (const name of ["master", "sse-s3"]) await create({ name }, 409);
  for (const name of ["", "a/b", "ä", "a".repeat(200), "-a"]) await create({ name }, 400);
  await create({ name: "two", policy: { Statement: [] } }, 400);
  await create(
    {
      name: "two",
      policy: { Statement: { Effect: "Allow", Principal: "*", Action: "s3:*", Resource: "*" } },
    },
    400,
  );
  const changed = callJson(serving, "PATCH", `${KEYS}/${key.id}`, { description: "changed" });
  assert.equal((await readJson<{ description: string }>(changed)).description, "changed");
  for (const days of ["6", "31", "x", "-1"])
    await readJson(callJson(serving, "DELETE", `${KEYS}/one?days=${days}`), 400);
  const planned = await readJson<Key>(callJson(serving, "DELETE", `${KEYS}/one?days=7`), 202);
  assert.equal(planned.state, "pending_deletion");
  assert.ok(Date.parse(planned.delete_at!) > Date.now() + 6 * 86_400_000);
  const enabled = await readJson<Key>(callJson(serving, "POST", `${KEYS}/one/enable`));
  assert.deepEqual([enabled.state, enabled.delete_at], ["enabled", null]);
  for (const path of ["", "/rotate", "/disable"])
    await readJson(callJson(serving, path === "" ? "GET" : "POST", `${KEYS}/none${path}`), 404);
  const reader = await addReader(serving, "box", ["s3:GetObject"]);
  for (const [method, path] of [
    ["GET", KEYS],
    ["POST", `${KEYS}/one/rotate`],
    ["DELETE", `${KEYS}/one`],
  ] as const)
    assert.equal((await serving.admin.send(method, path, { key: reader })).status, 403);
  assert.equal((await serving.admin.send("GET", KEYS, { key: null })).status, 401);
});

test("no answer, log or file of the service has a key, and the list counts objects", async () => {
  const created = await create({ name: "quiet" });
  await putUnder("quiet", "q", "text");
  const { items } = await readKeys();
  assert.equal(items.find(({ name }) => name === "quiet")!.versions[0]!.objects, 1);
  const { text } = await callJson(serving, "GET", KEYS);
  assert.ok(!/"(?:key|sealed|wrapped)"/.test(text), text);
  assert.ok(!serving.vault.output.includes(created.versions[0]!.id));
});

test("rotations are carried out in the background, and survive a restart", async () => {
  await create({ name: "turning" });
  for (let n = 0; n < 20; n += 1) await putUnder("turning", `t${n}`, `text ${n}`);
  await readJson(callJson(serving, "POST", `${KEYS}/turning/rotate`), 202);
  await serving.vault.kill();
  await serving.vault.start();
  await waitFor(async () => {
    const { items } = await readKeys();
    const { versions } = items.find(({ name }) => name === "turning")!;
    return versions.length === 1 && versions[0]!.objects === 20;
  }, "the rotation");
  assert.equal((await serving.s3.must("GET", "/box/t7")).text, "text 7");
});

test("the master key is replaced online, by the API and the command, and offline; users and objects stay", async () => {
  await putUnder("one", "kept");
  await serving.s3.must("PUT", "/box/s3", { body: "text", headers: { [SSE]: "AES256" } });
  const reader = await addReader(serving, "box", ["s3:GetObject"]);
  const ids = [(await readKeys()).master.id];
  const assertWorks = async (): Promise<void> => {
    for (const key of ["kept", "s3"]) {
      const answer = await serving.s3.send("GET", `/box/${key}`, { key: reader });
      assert.equal(answer.text, "text", `${answer.status}`);
    }
    ids.push((await readKeys()).master.id);
    assert.equal(new Set(ids).size, ids.length, ids.join());
  };
  await readJson(callJson(serving, "POST", `${KEYS}/master/rotate`), 202);
  await assertWorks();
  const online = await runCommand("rotate-master-key");
  assert.equal(online.code, 0, online.out);
  assert.match(online.out, /of the running store was replaced/);
  await assertWorks();
  await serving.vault.stop();
  const offline = await runCommand("rotate-master-key");
  assert.equal(offline.code, 0, offline.out);
  await serving.vault.start();
  await assertWorks();
});

test("a repository of backups belongs to the store after a new master key, and a key that has rotated since", async () => {
  const saved = await create({ name: "saved" });
  await serving.s3.must("PUT", "/saved");
  await serving.s3.must("PUT", "/saved/a", { body: "text", headers: withKey("saved") });
  await back(serving);
  await readJson(callJson(serving, "POST", `${KEYS}/master/rotate`), 202);
  await back(serving);
  await readJson(callJson(serving, "POST", `${KEYS}/saved/rotate`), 202);
  await serving.s3.must("DELETE", "/saved/a");
  const job = await restore(serving, { buckets: ["saved"], as: { saved: "again" } });
  assert.equal(job.state, "completed", JSON.stringify(job));
  const answer = await serving.s3.must("GET", "/again/a");
  assert.equal(answer.text, "text");
  assert.ok(String(answer.headers[`${SSE}-aws-kms-key-id`]).endsWith(saved.id));
});

test("a start without the service is refused, naming the buckets; --force serves the rest, and all when it is back", async () => {
  await create({ name: "far", source: "secret_service" });
  await create({ name: "missing", source: "secret_service" }, 400);
  assert.ok(
    service.requests.some((line) => line.endsWith(" acme")),
    service.requests.join("\n"),
  );
  await putUnder("far", "away");
  await serving.s3.must("PUT", "/box/plain", { body: "text" });
  await serving.vault.stop();
  service.fail({ status: 503, body: '{"errors":["Vault is sealed"]}' });
  await assert.rejects(serving.vault.start(), (error: Error) => {
    assert.match(error.message, /objects of these buckets need them: box\b/);
    assert.match(error.message, /503/);
    return /--force/.test(error.message);
  });
  await serving.vault.start({ PLATFORM_VAULT_FORCE: "true" });
  const refused = await serving.s3.send("GET", "/box/away");
  assert.deepEqual([refused.status, refused.code], [503, "ServiceUnavailable"]);
  assert.equal((await serving.s3.must("GET", "/box/plain")).text, "text");
  assert.equal((await serving.s3.must("GET", "/box/kept")).text, "text");
  const listed = await serving.s3.must("GET", "/box?list-type=2&prefix=away");
  assert.ok(listed.text.includes("<Key>away</Key>"));
  service.fail(undefined);
  await serving.vault.stop();
  await serving.vault.start();
  assert.equal((await serving.s3.must("GET", "/box/away")).text, "text");
  const client = new S3TestClient(serving.vault.adminPort, vaultRoot);
  assert.equal((await client.send("GET", "/readyz", { key: null })).status, 200);
  client.close();
});
