// Encryption with the store's keys:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingServerSideEncryption.html
import assert from "node:assert/strict";
import { assertError, casesOf, md5 } from "../case.ts";
import { PART, upload } from "../upload.ts";

const SSE = { "x-amz-server-side-encryption": "AES256" };

export const cases = casesOf(
  "Encryption with keys of the store",
  [
    "is asked for by a header, told in answers, and leaves the ETag the MD5",
    async ({ ask, put }) => {
      const stored = await put("key", "hello", SSE);
      assert.equal(stored.headers["x-amz-server-side-encryption"], "AES256");
      assert.equal(stored.headers["etag"], `"${md5("hello")}"`);
      const got = await ask("GET", "/key");
      assert.equal(got.text, "hello");
      assert.equal(got.headers["x-amz-server-side-encryption"], "AES256");
      assert.equal(got.headers["content-length"], "5");
    },
  ],
  [
    "gives ranges anywhere",
    async ({ ask, put }) => {
      const body = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 11) % 253));
      await put("key", body, SSE);
      for (const [start, end] of [
        [0, 9],
        [65_530, 65_550],
        [131_072, 200_000],
        [299_999, 299_999],
      ] as const) {
        const got = await ask("GET", "/key", { headers: { range: `bytes=${start}-${end}` } });
        assert.ok(got.body.equals(body.subarray(start, end + 1)), `${start}-${end}`);
      }
    },
  ],
  [
    "encrypts uploads in parts",
    async (scene) => {
      const { answer } = await upload(scene, "key", [PART, "last"], SSE);
      assert.equal(answer.headers["x-amz-server-side-encryption"], "AES256");
      const got = await scene.ask("GET", "/key");
      assert.ok(got.body.equals(Buffer.concat([PART, Buffer.from("last")])));
      assert.equal(got.headers["x-amz-server-side-encryption"], "AES256");
    },
  ],
  [
    "encrypts a copy where it is asked for",
    async ({ ask, bucket, put }) => {
      await put("plain", "hello");
      const headers = { "x-amz-copy-source": `${bucket}/plain`, ...SSE };
      const copied = await ask("PUT", "/key", { headers });
      assert.equal(copied.headers["x-amz-server-side-encryption"], "AES256");
      assert.equal((await ask("GET", "/key")).text, "hello");
    },
  ],
  [
    "InvalidEncryptionAlgorithmError for an algorithm that is not known",
    async ({ ask }) => {
      const headers = { "x-amz-server-side-encryption": "ROT13" };
      assertError(await ask("PUT", "/key", { headers }), 400, "InvalidEncryptionAlgorithmError");
    },
  ],
  [
    "InvalidArgument for a named key without the algorithm",
    async ({ ask }) => {
      const headers = { "x-amz-server-side-encryption-aws-kms-key-id": "key-1" };
      assertError(await ask("PUT", "/key", { headers, body: "x" }), 400, "InvalidArgument");
      assert.equal((await ask("HEAD", "/key")).status, 404);
    },
  ],
);
