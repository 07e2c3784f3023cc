// The MinIO client for JavaScript: another signer, another response parser, parts without checksums.
import assert from "node:assert/strict";
import { createReadStream, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { Client, CopyDestinationOptions, CopySourceOptions } from "minio";
import { vaultRoot } from "@platform/testing/staged-vault";
import type { RealS3Client, S3Scene } from "./client.ts";

const PART_BYTES = 5 * 1024 * 1024;
const KEY = "a/ä b+c%&'(1).txt";

async function putAndGet(client: Client, bucket: string): Promise<void> {
  await client.putObject(bucket, KEY, "hello", undefined, {
    "Content-Type": "text/a",
    color: "red",
  });
  const stat = await client.statObject(bucket, KEY);
  assert.equal(stat.size, 5);
  assert.equal(stat.metaData["color"], "red");
  assert.equal(stat.metaData["content-type"], "text/a");
  assert.equal(String(await buffer(await client.getObject(bucket, KEY))), "hello");
  assert.equal(String(await buffer(await client.getPartialObject(bucket, KEY, 1, 3))), "ell");
  await assert.rejects(client.getObject(bucket, "none"), { code: "NoSuchKey" });
  await client.setObjectTagging(bucket, KEY, { team: "blue" });
  assert.deepEqual(await client.getObjectTagging(bucket, KEY), [{ Key: "team", Value: "blue" }]);
}

async function uploadAndCompose(client: Client, { bucket, tree }: S3Scene): Promise<void> {
  const path = join(tree, "large.bin");
  const large = readFileSync(path);
  await client.putObject(bucket, "stream", createReadStream(path));
  assert.ok((await buffer(await client.getObject(bucket, "stream"))).equals(large));
  const left = await client.initiateNewMultipartUpload(bucket, "left/over", {});
  assert.equal(await client.findUploadId(bucket, "left/over"), left);
  await client.removeIncompleteUpload(bucket, "left/over");
  const target = new CopyDestinationOptions({ Bucket: bucket, Object: "composed" });
  const sources = ["stream", "stream"].map(
    (key) => new CopySourceOptions({ Bucket: bucket, Object: key }),
  );
  await client.composeObject(target, sources);
  assert.equal((await client.statObject(bucket, "composed")).size, large.length * 2);
}

async function presign(client: Client, bucket: string): Promise<void> {
  const putUrl = await client.presignedPutObject(bucket, "by URL", 60);
  assert.equal((await fetch(putUrl, { method: "PUT", body: "by URL" })).status, 200);
  const type = { "response-content-type": "text/b" };
  const answer = await fetch(await client.presignedGetObject(bucket, "by URL", 60, type));
  assert.equal(answer.headers.get("content-type"), "text/b");
  assert.equal(await answer.text(), "by URL");
  const policy = client.newPostPolicy();
  policy.setBucket(bucket);
  policy.setKey("by form");
  policy.setExpires(new Date(Date.now() + 60_000));
  policy.setContentLengthRange(1, 10);
  const { postURL, formData } = await client.presignedPostPolicy(policy);
  for (const [text, status] of [
    ["by form", 204],
    ["by a longer form", 400],
  ] as const) {
    const form = new FormData();
    for (const [name, value] of Object.entries(formData)) form.append(name, String(value));
    form.append("file", new Blob([text]));
    assert.equal((await fetch(postURL, { method: "POST", body: form })).status, status);
  }
}

async function listAndDelete(client: Client, bucket: string): Promise<void> {
  await client.setBucketVersioning(bucket, { Status: "Enabled" });
  await client.putObject(bucket, KEY, "again");
  await client.removeObject(bucket, KEY);
  const keys = await listNames(client, bucket);
  assert.deepEqual(keys, ["by URL", "by form", "composed", "stream"]);
  const versions = [];
  for await (const item of client.listObjects(bucket, "", true, { IncludeVersion: true }))
    versions.push({ name: String(item.name), versionId: String(item.versionId) });
  assert.equal(versions.length, 7);
  assert.deepEqual(await client.removeObjects(bucket, versions), []);
  await client.removeBucket(bucket);
  assert.equal(await client.bucketExists(bucket), false);
}

async function listNames(client: Client, bucket: string): Promise<string[]> {
  const names: string[] = [];
  for await (const item of client.listObjectsV2(bucket, "", true, "")) names.push(item.name);
  return names;
}

/** MinIO's client. */
export const minio: RealS3Client = {
  name: "MinIO client for JavaScript",
  package: { registry: "npm", name: "minio" },
  readVersion,
  shows:
    "metadata and tags, ranges, multipart upload of a stream, an incomplete upload, composing, presigned URLs, POST forms, versions, batch deletion",
  async exercise(scene) {
    const client = new Client({
      endPoint: "127.0.0.1",
      port: scene.vault.port,
      useSSL: false,
      accessKey: vaultRoot.accessKey,
      secretKey: vaultRoot.secretKey,
      partSize: PART_BYTES,
    });
    await putAndGet(client, scene.bucket);
    await uploadAndCompose(client, scene);
    await presign(client, scene.bucket);
    await listAndDelete(client, scene.bucket);
  },
};

// The package does not export its package.json.
function readVersion(): string {
  const main = createRequire(import.meta.url).resolve("minio");
  const path = main.replace(/(?<=[\\/]node_modules[\\/]minio[\\/]).*/, "package.json");
  return (JSON.parse(readFileSync(path, "utf8")) as { version: string }).version;
}
