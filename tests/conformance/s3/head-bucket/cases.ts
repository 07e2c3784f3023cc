// HeadBucket: https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html
import assert from "node:assert/strict";
import { assertEmpty, casesOf } from "../case.ts";

export const cases = casesOf(
  "HeadBucket",
  [
    "answers 200 with the region and no body",
    async ({ ask }) => {
      const answer = await ask("HEAD");
      assertEmpty(answer, 200);
      assert.equal(answer.headers["x-amz-bucket-region"], "us-east-1");
      assert.equal(answer.headers["x-amz-access-point-alias"], "false");
    },
  ],
  [
    "404 for a bucket that is not there",
    async ({ client, bucket }) => assertEmpty(await client.send("HEAD", `/${bucket}-not`), 404),
  ],
  [
    "403 without a signature, with the region: SDKs look for it so",
    async ({ ask }) => {
      const answer = await ask("HEAD", "", { as: "nobody" });
      assertEmpty(answer, 403);
      assert.equal(answer.headers["x-amz-bucket-region"], "us-east-1");
    },
  ],
  [
    "200 without a signature where everyone may list",
    async ({ ask, must }) => {
      await must("PUT", "?acl", { headers: { "x-amz-acl": "public-read" } });
      assertEmpty(await ask("HEAD", "", { as: "nobody" }), 200);
    },
  ],
  [
    "takes a path that ends in a slash",
    async ({ ask }) => assertEmpty(await ask("HEAD", "/"), 200),
  ],
);
