// UploadPart: https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPart.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, digest, md5 } from "../case.ts";
import { begin, complete, putPart, toList } from "../upload.ts";

export const cases = casesOf(
  "UploadPart",
  [
    "answers 200 without a body, with the MD5 in quotes as ETag",
    async (scene) => {
      const id = await begin(scene, "key");
      const target = `/key?partNumber=1&uploadId=${id}`;
      const answer = await scene.ask("PUT", target, { body: "hello" });
      assertEmpty(answer, 200);
      assert.equal(answer.headers["etag"], `"${md5("hello")}"`);
    },
  ],
  [
    "replaces a part of the same number",
    async (scene) => {
      const id = await begin(scene, "key");
      await putPart(scene, "key", id, 1, "first");
      const part = await putPart(scene, "key", id, 1, "second");
      await complete(scene, "key", id, [part]);
      assert.equal((await scene.ask("GET", "/key")).text, "second");
    },
  ],
  [
    "NoSuchUpload for an upload that is not there",
    async ({ ask }) => {
      const answer = await ask("PUT", "/key?partNumber=1&uploadId=made-up", { body: "x" });
      assertError(answer, 404, "NoSuchUpload");
    },
  ],
  [
    "NoSuchUpload for an upload of another key",
    async (scene) => {
      const id = await begin(scene, "key");
      const answer = await scene.ask("PUT", `/other?partNumber=1&uploadId=${id}`, { body: "x" });
      assertError(answer, 404, "NoSuchUpload");
    },
  ],
  [
    "InvalidArgument for part numbers outside 1 to 10000",
    async (scene) => {
      const id = await begin(scene, "key");
      for (const number of ["0", "10001", "-1", "a", ""]) {
        const target = `/key?partNumber=${number}&uploadId=${id}`;
        assertError(await scene.ask("PUT", target, { body: "x" }), 400, "InvalidArgument");
      }
    },
  ],
  [
    "takes part numbers 1 and 10000",
    async (scene) => {
      const id = await begin(scene, "key");
      await putPart(scene, "key", id, 1, "x");
      await putPart(scene, "key", id, 10_000, "x");
    },
  ],
  [
    "BadDigest for a Content-MD5 of other bytes",
    async (scene) => {
      const id = await begin(scene, "key");
      const headers = { "content-md5": digest("md5", "other") };
      const target = `/key?partNumber=1&uploadId=${id}`;
      assertError(await scene.ask("PUT", target, { body: "x", headers }), 400, "BadDigest");
      const parts = await scene.ask("GET", `/key?uploadId=${id}`);
      assert.deepEqual(parts.document.all("Part"), []);
    },
  ],
  [
    "checks and answers a checksum",
    async (scene) => {
      const id = await begin(scene, "key", { "x-amz-checksum-algorithm": "CRC32" });
      const target = `/key?partNumber=1&uploadId=${id}`;
      const good = await scene.ask("PUT", target, {
        body: "123456789",
        headers: { "x-amz-checksum-crc32": "y/Q5Jg==" },
      });
      assert.equal(good.headers["x-amz-checksum-crc32"], "y/Q5Jg==");
      const bad = await scene.ask("PUT", target, {
        body: "12345678",
        headers: { "x-amz-checksum-crc32": "y/Q5Jg==" },
      });
      assertError(bad, 400, "BadDigest");
    },
  ],
  [
    "InvalidRequest for a checksum of another algorithm than the upload's",
    async (scene) => {
      const id = await begin(scene, "key", { "x-amz-checksum-algorithm": "SHA256" });
      const answer = await scene.ask("PUT", `/key?partNumber=1&uploadId=${id}`, {
        body: "123456789",
        headers: { "x-amz-checksum-crc32": "y/Q5Jg==" },
      });
      assertError(answer, 400, "InvalidRequest");
    },
  ],
  [
    "takes a checksum of any algorithm where the upload names none, and checks it",
    async (scene) => {
      const id = await begin(scene, "key");
      const target = `/key?partNumber=1&uploadId=${id}`;
      const headers = { "x-amz-checksum-crc32": "y/Q5Jg==" };
      assertError(await scene.ask("PUT", target, { body: "x", headers }), 400, "BadDigest");
      const part = await scene.must("PUT", target, { body: "123456789", headers });
      assert.equal(part.headers["x-amz-checksum-crc32"], "y/Q5Jg==");
      const list = (crc32: string) =>
        toList(
          [{ number: 1, etag: part.headers["etag"]! }],
          `<ChecksumCRC32>${crc32}</ChecksumCRC32>`,
        );
      const wrong = await scene.ask("POST", `/key?uploadId=${id}`, { body: list("AAAAAA==") });
      assertError(wrong, 400, "InvalidPart");
      await scene.must("POST", `/key?uploadId=${id}`, { body: list("y/Q5Jg==") });
      const mode = { headers: { "x-amz-checksum-mode": "ENABLED" } };
      const head = await scene.must("HEAD", "/key", mode);
      assert.equal(head.headers["x-amz-checksum-crc64nvme"], "rosUhgp5mIg=");
      assert.equal(head.headers["x-amz-checksum-type"], "FULL_OBJECT");
    },
  ],
  [
    "NoSuchUpload once the upload is complete or aborted",
    async (scene) => {
      const done = await begin(scene, "key");
      await complete(scene, "key", done, [await putPart(scene, "key", done, 1, "x")]);
      const aborted = await begin(scene, "key");
      await scene.must("DELETE", `/key?uploadId=${aborted}`);
      for (const id of [done, aborted]) {
        const answer = await scene.ask("PUT", `/key?partNumber=2&uploadId=${id}`, { body: "x" });
        assertError(answer, 404, "NoSuchUpload");
      }
    },
  ],
  [
    "takes an empty part",
    async (scene) => {
      const id = await begin(scene, "key");
      const part = await putPart(scene, "key", id, 1, "");
      await complete(scene, "key", id, [part]);
      assert.equal((await scene.ask("HEAD", "/key")).headers["content-length"], "0");
    },
  ],
  [
    "takes signed chunks",
    async (scene) => {
      const id = await begin(scene, "key");
      const answer = await scene.must("PUT", `/key?partNumber=1&uploadId=${id}`, {
        chunks: { pieces: ["first ", "second"], isSigned: true },
      });
      assert.equal(answer.headers["etag"], `"${md5("first second")}"`);
    },
  ],
  [
    "InvalidArgument for an upload's id beside another subresource",
    async (scene) => {
      const id = await begin(scene, "key");
      const target = `/key?partNumber=1&uploadId=${id}&acl`;
      assertError(await scene.ask("PUT", target, { body: "x" }), 400, "InvalidArgument");
    },
  ],
);
