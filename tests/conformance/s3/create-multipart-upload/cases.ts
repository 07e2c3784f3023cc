// CreateMultipartUpload: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateMultipartUpload.html
import assert from "node:assert/strict";
import { assertError, casesOf, readResult } from "../case.ts";

export const cases = casesOf(
  "CreateMultipartUpload",
  [
    "answers bucket, key and an id",
    async ({ ask, bucket }) => {
      const result = readResult(
        await ask("POST", "/a%20b%26c?uploads"),
        "InitiateMultipartUploadResult",
      );
      assert.equal(result.get("Bucket"), bucket);
      assert.equal(result.get("Key"), "a b&c");
      assert.ok(result.get("UploadId")!.length > 10);
    },
  ],
  [
    "gives each upload of a key an id of its own",
    async ({ must }) => {
      const first = (await must("POST", "/key?uploads")).document.get("UploadId");
      const second = (await must("POST", "/key?uploads=")).document.get("UploadId");
      assert.notEqual(first, second);
    },
  ],
  [
    "shows nothing of the object before it is complete",
    async ({ ask, must }) => {
      await must("POST", "/key?uploads");
      assertError(await ask("GET", "/key"), 404, "NoSuchKey");
      assert.deepEqual((await ask("GET")).document.texts("Contents/Key"), []);
    },
  ],
  [
    "NoSuchBucket where the bucket is not there",
    async ({ client, bucket }) => {
      assertError(await client.send("POST", `/${bucket}-not/key?uploads`), 404, "NoSuchBucket");
    },
  ],
  [
    "KeyTooLongError above 1024 bytes",
    async ({ ask }) => {
      assertError(await ask("POST", `/${"k".repeat(1_025)}?uploads`), 400, "KeyTooLongError");
    },
  ],
  [
    "names the checksum's algorithm and type that were asked for",
    async ({ ask }) => {
      const headers = { "x-amz-checksum-algorithm": "SHA256" };
      const answer = await ask("POST", "/key?uploads", { headers });
      assert.equal(answer.headers["x-amz-checksum-algorithm"], "SHA256");
      assert.equal(answer.headers["x-amz-checksum-type"], "COMPOSITE");
      const plain = await ask("POST", "/key?uploads");
      assert.equal(plain.headers["x-amz-checksum-algorithm"], undefined);
    },
  ],
  [
    "CRC64NVME is of the full object, CRC32 may be",
    async ({ ask }) => {
      const full = { "x-amz-checksum-algorithm": "CRC32", "x-amz-checksum-type": "FULL_OBJECT" };
      const first = await ask("POST", "/key?uploads", { headers: full });
      assert.equal(first.headers["x-amz-checksum-type"], "FULL_OBJECT");
      const headers = { "x-amz-checksum-algorithm": "CRC64NVME" };
      const second = await ask("POST", "/key?uploads", { headers });
      assert.equal(second.headers["x-amz-checksum-type"], "FULL_OBJECT");
    },
  ],
  [
    "InvalidRequest for a type that an algorithm does not have",
    async ({ ask }) => {
      const pairs = [
        ["SHA256", "FULL_OBJECT"],
        ["SHA1", "FULL_OBJECT"],
        ["CRC64NVME", "COMPOSITE"],
        ["CRC32", "OTHER"],
      ] as const;
      for (const [algorithm, type] of pairs) {
        const headers = { "x-amz-checksum-algorithm": algorithm, "x-amz-checksum-type": type };
        assertError(await ask("POST", "/key?uploads", { headers }), 400, "InvalidRequest");
      }
    },
  ],
  [
    "InvalidRequest for an algorithm that is not known",
    async ({ ask }) => {
      const headers = { "x-amz-checksum-algorithm": "MD4" };
      assertError(await ask("POST", "/key?uploads", { headers }), 400, "InvalidRequest");
    },
  ],
  [
    "AccessDenied without a signature",
    async ({ ask }) => {
      assertError(await ask("POST", "/key?uploads", { as: "nobody" }), 403, "AccessDenied");
    },
  ],
  [
    "refuses bad attributes at once",
    async ({ ask }) => {
      const bad = [
        [{ "x-amz-storage-class": "FASTEST" }, "InvalidStorageClass"],
        [{ "x-amz-acl": "everybody" }, "InvalidArgument"],
        [{ "x-amz-tagging": "=1" }, "InvalidTag"],
        [{ "x-amz-server-side-encryption": "ROT13" }, "InvalidEncryptionAlgorithmError"],
      ] as const;
      for (const [headers, code] of bad) {
        assertError(await ask("POST", "/key?uploads", { headers }), 400, code);
      }
    },
  ],
);
