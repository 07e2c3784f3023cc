// Bucket owner conditions: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-owner-condition.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf } from "../case.ts";

const ACCOUNT = "000000000001";
const OTHER = "123456789012";

export const cases = casesOf(
  "Expected bucket owner",
  [
    "the account's own id is taken",
    async ({ ask }) => {
      const headers = { "x-amz-expected-bucket-owner": ACCOUNT };
      assertEmpty(await ask("PUT", "/key", { headers, body: "x" }), 200);
      assert.equal((await ask("GET", "/key", { headers })).text, "x");
    },
  ],
  [
    "another id is AccessDenied, whatever is asked",
    async ({ ask, put }) => {
      await put("key", "x");
      const headers = { "x-amz-expected-bucket-owner": OTHER };
      for (const [method, target] of [
        ["GET", "/key"],
        ["PUT", "/key"],
        ["DELETE", "/key"],
        ["GET", "?list-type=2"],
        ["GET", "?policy"],
        ["DELETE", ""],
      ] as const) {
        assertError(await ask(method, target, { headers }), 403, "AccessDenied");
      }
      assert.equal((await ask("GET", "/key")).text, "x");
    },
  ],
  [
    "of a copy's source is looked at as well",
    async ({ ask, bucket, put }) => {
      await put("key", "x");
      const headers = {
        "x-amz-copy-source": `${bucket}/key`,
        "x-amz-source-expected-bucket-owner": OTHER,
      };
      assertError(await ask("PUT", "/copy", { headers }), 403, "AccessDenied");
    },
  ],
  [
    "what is no account's id is InvalidBucketOwnerAWSAccountID",
    async ({ ask }) => {
      const headers = { "x-amz-expected-bucket-owner": "me" };
      assertError(await ask("GET", "", { headers }), 400, "InvalidBucketOwnerAWSAccountID");
    },
  ],
);
