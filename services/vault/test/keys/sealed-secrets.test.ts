// All secrets that the master key protects: after its rotation, nothing in the data folder needs the former one.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { LyingS3 } from "@platform/testing/lying-s3";
import { waitFor } from "@platform/testing/wait";
import { openBytes } from "../../src/access/secret-box.ts";
import { KeyRing } from "../../src/keys/key-ring.ts";
import { addRemote } from "../replication/stores.ts";
import { addReader, callJson, readJson } from "../serving/json-api.ts";
import type { Key } from "../serving/s3-client.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { describeRing } from "./rig.ts";

const PROGRAM = fileURLToPath(new URL("../../../../bin/platform-vaultd.js", import.meta.url));
const SECRET = "a secret of more than thirty-two bytes";
const ISSUER = "http://identity.test";

interface SessionKey {
  key: Key;
  token: string;
}

let serving: Serving;
let remote: LyingS3;
let reader: Key;
let session: SessionKey;

before(async () => {
  remote = await LyingS3.start();
  serving = await serve({
    env: { PLATFORM_JWT_SECRET: SECRET, PLATFORM_JWT_ISSUER: ISSUER },
  });
  await serving.s3.must("PUT", "/box");
  await serving.s3.must("PUT", "/box/k", {
    body: "text",
    headers: { "x-amz-server-side-encryption": "AES256" },
  });
  await addRemote(serving, "far", remote.endpoint);
  reader = await addReader(serving, "box", ["s3:GetObject"]);
  const statement = { Effect: "Allow", Action: "s3:*", Resource: "*" };
  const policies = { main: { Version: "2012-10-17", Statement: [statement] } };
  await callJson(serving, "PUT", "/api/v1/roles/notes", { policies });
  session = await assume();
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  await remote[Symbol.asyncDispose]();
});

async function assume(): Promise<SessionKey> {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const claims = { iss: ISSUER, sub: "ada", roles: ["notes"], scope: "vault:read vault:write" };
  const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ ...claims, exp })}`;
  const token = `${text}.${createHmac("sha256", SECRET).update(text).digest("base64url")}`;
  const answer = await serving.s3.must("POST", "/", {
    key: null,
    body: new URLSearchParams({
      Action: "AssumeRoleWithWebIdentity",
      Version: "2011-06-15",
      RoleArn: "arn:aws:iam:::role/notes",
      RoleSessionName: "test",
      WebIdentityToken: token,
    }).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
  const read = (name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(answer.text)![1]!;
  return {
    key: { accessKey: read("AccessKeyId"), secretKey: read("SecretAccessKey") },
    token: read("SessionToken"),
  };
}

// Users, sessions and remotes sign with secrets that are sealed on disk.
async function assertWorks(): Promise<void> {
  assert.equal((await serving.s3.must("GET", "/box/k", { key: reader })).text, "text");
  const { key, token: value } = session;
  const headers = { "x-amz-security-token": value };
  assert.equal((await serving.s3.must("GET", "/box/k", { key, headers })).text, "text");
  const path = "/admin/remotes/far/check";
  const { steps } = await readJson<{ steps: { step: string; outcome: string }[] }>(
    callJson(serving, "POST", path, { bucket: "cold" }),
  );
  assert.equal(steps[0]?.outcome, "ok", JSON.stringify(steps));
}

const locate = (...names: string[]): string => join(serving.vault.dataDir, ...names);
const readMaster = (): Buffer => readFileSync(locate("access", "master.key"));

interface Sealed {
  name: string;
  sealed: string;
}

// Of a stopped store: every text that is sealed, with the name that is authenticated with it.
function listSealed(): Sealed[] {
  const found: Sealed[] = [];
  for (const name of readdirSync(locate("access"))) {
    if (!/^(?:directory|session-keys)/.test(name) || name.includes(".mark")) continue;
    const text = readFileSync(locate("access", name), "utf8");
    const rows = text.matchAll(/"accessKey":"([^"]+)"[^{}]*?"(?:sealed|sealedSecret)":"([^"]+)"/g);
    for (const [, key, sealed] of rows) found.push({ name: key!, sealed: sealed! });
  }
  for (const name of ["index.sqlite", "index-copy.sqlite"]) {
    if (!existsSync(locate(name))) continue;
    const index = new DatabaseSync(locate(name), { readOnly: true });
    for (const row of index.prepare("select name, document from remotes").all()) {
      const { sealed } = JSON.parse(String(row["document"])) as { sealed: string };
      found.push({ name: `remote ${String(row["name"])}`, sealed });
    }
    index.close();
  }
  return found;
}

async function readBoxKeys(): Promise<readonly Buffer[]> {
  const ring = await KeyRing.open(describeRing(serving.vault.dataDir), false);
  return ring.listBoxKeys();
}

test("the keys of users, sessions and remotes are sealed again, and the keys that sealed them are forgotten", async () => {
  await readJson(callJson(serving, "POST", "/api/v1/jobs/index_copy/start"), 202);
  await waitFor(() => existsSync(locate("index-copy.sqlite")), "a copy of the index");
  await assertWorks();
  await serving.vault.stop();
  const former = { master: readMaster(), boxes: await readBoxKeys() };
  const before = listSealed();
  assert.deepEqual(
    new Set(before.map(({ name }) => name)),
    new Set([reader.accessKey, session.key.accessKey, "remote far"]),
  );
  for (const { name, sealed } of before) openBytes(former.boxes[0]!, sealed, name);

  await serving.vault.start();
  await readJson(callJson(serving, "POST", "/admin/encryption-keys/master/rotate"), 202);
  await waitFor(async () => (await readBoxKeys()).length === 1, "the former key to be forgotten");
  await assertWorks();
  await serving.vault.stop();
  await assertForgotten(former.boxes);
  assert.notDeepEqual(readMaster(), former.master);
  await serving.vault.start();
  await assertWorks();
});

test("a master key that is replaced offline leaves that to the next start", async () => {
  await serving.vault.stop();
  const former = await readBoxKeys();
  const env = { ...process.env, PLATFORM_VAULT_DATA_DIR: serving.vault.dataDir };
  for (const _ of [1, 2])
    await promisify(execFile)(process.execPath, [PROGRAM, "rotate-master-key"], { env });
  assert.equal((await readBoxKeys()).length, 3);
  await serving.vault.start();
  await waitFor(async () => (await readBoxKeys()).length === 1, "the former keys to be forgotten");
  await assertWorks();
  await serving.vault.stop();
  await assertForgotten(former);
  await serving.vault.start();
  await assertWorks();
});

async function assertForgotten(former: readonly Buffer[]): Promise<void> {
  const [box, ...others] = await readBoxKeys();
  assert.equal(others.length, 0);
  const sealed = listSealed();
  assert.ok(sealed.length > 3);
  for (const one of sealed) {
    openBytes(box!, one.sealed, one.name);
    for (const key of former) assert.throws(() => openBytes(key, one.sealed, one.name));
  }
}
