// The platform's own S3 client against its own storage.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { discardUploads, S3Client, S3ClientError, uploadObject } from "@platform/s3";
import { createUrlSigner } from "@platform/s3/signature";
import { StagedVault, vaultRoot } from "@platform/testing/staged-vault";

const MIB = 1024 * 1024;
const folder = mkdtempSync(join(tmpdir(), "s3-client-"));
let vault: StagedVault;
let client: S3Client;

const connect = (bucket: string, secretKey: string = vaultRoot.secretKey) =>
  new S3Client({
    endpoint: new URL(vault.url),
    region: "us-east-1",
    bucket,
    credentials: () => ({ accessKey: vaultRoot.accessKey, secretKey }),
    attemptsMax: 1,
  });

before(async () => {
  vault = await StagedVault.start({ folder });
  const url = new URL("/cold", vault.url);
  const identity = {
    accessKey: vaultRoot.accessKey,
    secret: vaultRoot.secretKey,
    region: "us-east-1",
  };
  const made = await fetch(url, {
    method: "PUT",
    headers: createUrlSigner(identity)("PUT", url, ""),
  });
  assert.equal(made.status, 200, await made.text());
  client = connect("cold");
});

after(async () => {
  client.close();
  await vault[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

test("objects of all sizes and names come back as they were put, whole and in ranges", async () => {
  const keys = ["a/b c+d%2F&=é~(!)'*", "empty", "large"];
  const bodies = [randomBytes(100_000), Buffer.alloc(0), randomBytes(17 * MIB + 3)];
  for (const [at, key] of keys.entries()) {
    const body = bodies[at]!;
    const read = (position: number, length: number) =>
      Promise.resolve(body.subarray(position, position + length));
    await uploadObject(client, key, { bytes: body.length, read });
    assert.equal((await client.head(key))?.bytes, body.length);
    for (const start of [0, 1, 8 * MIB - 1].filter((one) => one < body.length)) {
      const found = await client.getRange(key, start, Math.min(body.length, start + 5 * MIB));
      assert.ok(found.equals(body.subarray(start, start + 5 * MIB)), `${key} at ${start}`);
    }
  }
  const listed: string[] = [];
  for await (const { key, bytes } of client.listAll("")) {
    listed.push(key);
    assert.equal(bytes, bodies[keys.indexOf(key)]!.length);
  }
  assert.deepEqual(listed, keys.toSorted());
  const past = (error: unknown) =>
    error instanceof S3ClientError && error.code === "range_not_satisfiable";
  await assert.rejects(client.getRange(keys[0]!, 99_999, 100_001), past);
  await assert.rejects(client.getRange(keys[0]!, 200_000, 200_001), past);
  for (const key of keys) await client.delete(key);
  await client.delete(keys[0]!);
  assert.equal(await client.head(keys[0]!), undefined);
});

test("pages of a listing are as long as requested and complete", async () => {
  const keys = Array.from({ length: 25 }, (_, at) => `page/${String(at).padStart(2, "0")}`);
  await Promise.all(keys.map((key) => client.put(key, Buffer.from(key))));
  const found: string[] = [];
  let token: string | undefined;
  do {
    const page = await client.list("page/", { keysMax: 10, token });
    assert.ok(page.objects.length <= 10);
    found.push(...page.objects.map(({ key }) => key));
    token = page.next;
  } while (token !== undefined);
  assert.deepEqual(found, keys);
});

test("an unfinished upload leaves no object and can be discarded", async () => {
  const id = await client.createUpload("parts");
  await client.uploadPart("parts", id, 1, randomBytes(5 * MIB));
  await client.createUpload("parts-of-another");
  assert.deepEqual(await client.listUploads("parts"), [id]);
  await discardUploads(client, "parts");
  assert.deepEqual(await client.listUploads("parts"), []);
  assert.equal((await client.listUploads("parts-of-another")).length, 1);
  await client.abortUpload("parts", id);
  assert.equal(await client.head("parts"), undefined);
});

test("errors have the codes of their causes", async () => {
  const codeOf = (work: Promise<unknown>) =>
    work.then(
      () => "ok",
      (error: S3ClientError) => error.code,
    );
  const other = connect("no-such-bucket");
  const stranger = connect("cold", "another-secret-key-of-the-store");
  assert.equal(await codeOf(client.getRange("missing", 0, 1)), "not_found");
  assert.equal(await codeOf(other.getRange("missing", 0, 1)), "no_such_bucket");
  assert.equal(await codeOf(other.head("missing")), "no_such_bucket");
  assert.equal(await codeOf(other.put("a", Buffer.from("x"))), "no_such_bucket");
  assert.equal(await codeOf(stranger.put("a", Buffer.from("x"))), "access_denied");
  assert.equal(await codeOf(stranger.head("a")), "access_denied");
  other.close();
  stranger.close();
});
