// Buckets in the host: https://docs.aws.amazon.com/AmazonS3/latest/userguide/VirtualHosting.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, type Scene } from "../case.ts";
import type { Ask } from "../client.ts";
import { DOMAIN } from "../stage.ts";

/** Sends a virtual-hosted-style request. */
function askHost({ client, bucket }: Scene, method: string, target: string, ask: Ask = {}) {
  return client.send(method, target, { host: `${bucket}.${DOMAIN}:${client.port}`, ...ask });
}

export const cases = casesOf(
  "Buckets in the host",
  [
    "puts, reads and deletes objects whose path is the key alone",
    async (scene) => {
      assertEmpty(await askHost(scene, "PUT", "/a/b", { body: "hello" }), 200);
      assert.equal((await askHost(scene, "GET", "/a/b")).text, "hello");
      assert.equal((await scene.ask("GET", "/a/b")).text, "hello");
      assertEmpty(await askHost(scene, "DELETE", "/a/b"), 204);
    },
  ],
  [
    "the root is the bucket",
    async (scene) => {
      await scene.put("key", "x");
      const list = await askHost(scene, "GET", "/?list-type=2");
      assert.equal(list.document.get("Name"), scene.bucket);
      assert.deepEqual(list.document.texts("Contents/Key"), ["key"]);
      assertEmpty(await askHost(scene, "HEAD", "/"), 200);
    },
  ],
  [
    "makes and deletes a bucket",
    async ({ client, bucket }) => {
      const host = `${bucket}-2.${DOMAIN}`;
      assertEmpty(await client.send("PUT", "/", { host }), 200);
      assertEmpty(await client.send("HEAD", `/${bucket}-2`), 200);
      assertEmpty(await client.send("DELETE", "/", { host }), 204);
    },
  ],
  [
    "takes a host in any case, with or without a port",
    async (scene) => {
      await scene.put("key", "x");
      for (const host of [`${scene.bucket}.${DOMAIN}`, `${scene.bucket}.${DOMAIN.toUpperCase()}`]) {
        assert.equal((await askHost(scene, "GET", "/key", { host })).text, "x");
      }
    },
  ],
  [
    "the bare domain takes the bucket in the path",
    async ({ client, bucket, put }) => {
      await put("key", "x");
      assert.equal((await client.send("GET", `/${bucket}/key`, { host: DOMAIN })).text, "x");
    },
  ],
  [
    "takes a name with dots",
    async ({ client, bucket }) => {
      const name = `dotted.${bucket.slice(0, 20)}.name`;
      await client.send("PUT", `/${name}`);
      const host = `${name}.${DOMAIN}`;
      assertEmpty(await client.send("PUT", "/key", { host, body: "x" }), 200);
      assert.equal((await client.send("GET", `/${name}/key`)).text, "x");
    },
  ],
  [
    "NoSuchBucket for a host that names none",
    async ({ client }) => {
      const answer = await client.send("GET", "/key", { host: `not-there.${DOMAIN}` });
      assertError(answer, 404, "NoSuchBucket");
      assert.equal(answer.document.get("BucketName"), "not-there");
    },
  ],
  [
    "SignatureDoesNotMatch for a host other than the signed one",
    async (scene) => {
      const spoil = (headers: Record<string, string>) => {
        headers["host"] = `other.${DOMAIN}`;
      };
      const answer = await askHost(scene, "GET", "/key", { spoil });
      assertError(answer, 403, "SignatureDoesNotMatch");
    },
  ],
  [
    "a completed upload is where its host says",
    async (scene) => {
      const begun = await askHost(scene, "POST", "/key?uploads");
      const id = begun.document.get("UploadId");
      const part = await askHost(scene, "PUT", `/key?partNumber=1&uploadId=${id}`, { body: "x" });
      const body = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers["etag"]}</ETag></Part></CompleteMultipartUpload>`;
      const done = await askHost(scene, "POST", `/key?uploadId=${id}`, { body });
      const host = `${scene.bucket}.${DOMAIN}:${scene.client.port}`;
      assert.equal(done.document.get("Location"), `http://${host}/key`);
    },
  ],
);
