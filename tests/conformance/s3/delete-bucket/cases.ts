// DeleteBucket: https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucket.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf } from "../case.ts";

export const cases = casesOf(
  "DeleteBucket",
  [
    "removes an empty bucket and answers 204",
    async ({ ask }) => {
      assertEmpty(await ask("DELETE"), 204);
      assert.equal((await ask("HEAD")).status, 404);
      assertError(await ask("DELETE"), 404, "NoSuchBucket");
    },
  ],
  [
    "BucketNotEmpty where an object is, which stays",
    async ({ ask, put }) => {
      await put("key", "x");
      assertError(await ask("DELETE"), 409, "BucketNotEmpty");
      assert.equal((await ask("GET", "/key")).text, "x");
    },
  ],
  [
    "BucketNotEmpty where only earlier versions and delete markers are",
    async ({ ask, put, setVersioning }) => {
      await setVersioning("Enabled");
      await put("key", "x");
      assertEmpty(await ask("DELETE", "/key"), 204);
      assertError(await ask("DELETE"), 409, "BucketNotEmpty");
    },
  ],
  [
    "succeeds once all versions and markers are gone",
    async ({ ask, put, setVersioning }) => {
      await setVersioning("Enabled");
      const version = (await put("key", "x")).headers["x-amz-version-id"];
      const marker = (await ask("DELETE", "/key")).headers["x-amz-version-id"];
      for (const id of [version, marker]) {
        assertEmpty(await ask("DELETE", `/key?versionId=${id}`), 204);
      }
      assertEmpty(await ask("DELETE"), 204);
    },
  ],
  [
    "takes open uploads with it",
    async ({ ask, must }) => {
      await must("POST", "/key?uploads");
      assertEmpty(await ask("DELETE"), 204);
    },
  ],
  [
    "leaves nothing to a bucket of the same name",
    async ({ ask, must, put, setVersioning }) => {
      await setVersioning("Enabled");
      const version = (await put("key", "x")).headers["x-amz-version-id"];
      await must("DELETE", `/key?versionId=${version}`);
      await must("PUT", "?tagging", {
        body: "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>",
      });
      await must("DELETE");
      await must("PUT");
      assert.equal((await ask("GET", "?versioning")).document.get("Status"), undefined);
      assertError(await ask("GET", "?tagging"), 404, "NoSuchTagSet");
    },
  ],
  [
    "AccessDenied without a signature",
    async ({ ask }) => assertError(await ask("DELETE", "", { as: "nobody" }), 403, "AccessDenied"),
  ],
  [
    "what is in a deleted bucket is NoSuchBucket",
    async ({ ask, must }) => {
      await must("DELETE");
      assertError(await ask("GET", "/key"), 404, "NoSuchBucket");
      assertError(await ask("GET"), 404, "NoSuchBucket");
    },
  ],
);
