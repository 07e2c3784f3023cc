// DeleteObject: https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObject.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, md5 } from "../case.ts";

export const cases = casesOf(
  "DeleteObject",
  [
    "removes the object and answers 204 without a body",
    async ({ ask, put }) => {
      await put("key", "x");
      const answer = await ask("DELETE", "/key");
      assertEmpty(answer, 204);
      assert.equal(answer.headers["x-amz-delete-marker"], undefined);
      assert.equal(answer.headers["x-amz-version-id"], undefined);
      assertError(await ask("GET", "/key"), 404, "NoSuchKey");
    },
  ],
  [
    "is 204 for what is not there",
    async ({ ask }) => assertEmpty(await ask("DELETE", "/never/was"), 204),
  ],
  [
    "NoSuchBucket where the bucket is not there",
    async ({ client, bucket }) => {
      assertError(await client.send("DELETE", `/${bucket}-not/key`), 404, "NoSuchBucket");
    },
  ],
  [
    "removes one key and not those below it",
    async ({ ask, put }) => {
      await put("a", "1");
      await put("a/b", "2");
      assertEmpty(await ask("DELETE", "/a"), 204);
      assert.equal((await ask("GET", "/a/b")).text, "2");
    },
  ],
  [
    "If-Match deletes the very object alone",
    async ({ ask, put }) => {
      await put("key", "x");
      const other = await ask("DELETE", "/key", { headers: { "if-match": '"other"' } });
      assertError(other, 412, "PreconditionFailed");
      assert.equal((await ask("HEAD", "/key")).status, 200);
      assertEmpty(await ask("DELETE", "/key", { headers: { "if-match": `"${md5("x")}"` } }), 204);
      assert.equal((await ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "If-Match: * deletes what is there",
    async ({ ask, put }) => {
      await put("key", "x");
      assertEmpty(await ask("DELETE", "/key", { headers: { "if-match": "*" } }), 204);
    },
  ],
  [
    "If-Match is NoSuchKey where nothing is",
    async ({ ask }) => {
      const answer = await ask("DELETE", "/key", { headers: { "if-match": '"other"' } });
      assertError(answer, 404, "NoSuchKey");
    },
  ],
  [
    "deletes by size and by time of change",
    async ({ ask, put }) => {
      await put("key", "hello");
      const modified = (await ask("HEAD", "/key")).headers["last-modified"]!;
      const wrong = await ask("DELETE", "/key", { headers: { "x-amz-if-match-size": "4" } });
      assertError(wrong, 412, "PreconditionFailed");
      const headers = {
        "x-amz-if-match-size": "5",
        "x-amz-if-match-last-modified-time": modified,
      };
      assertEmpty(await ask("DELETE", "/key", { headers }), 204);
    },
  ],
  [
    "AccessDenied without a signature",
    async ({ ask, put }) => {
      await put("key", "x");
      assertError(await ask("DELETE", "/key", { as: "nobody" }), 403, "AccessDenied");
      assert.equal((await ask("HEAD", "/key")).status, 200);
    },
  ],
  [
    "refuses a query parameter that it does not know, and deletes nothing",
    async ({ ask, put }) => {
      await put("key", "x");
      assertError(await ask("DELETE", "/key?unheard-of"), 501, "NotImplemented");
      assert.equal((await ask("HEAD", "/key")).status, 200);
    },
  ],
  [
    "a version that is not one is InvalidArgument",
    async ({ ask, put }) => {
      await put("key", "x");
      assertError(await ask("DELETE", "/key?versionId=not-a-version"), 400, "InvalidArgument");
    },
  ],
);
