// PutBucketTagging, GetBucketTagging, DeleteBucketTagging: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketTagging.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult } from "../case.ts";

function toBody(keys: readonly string[]): string {
  const items = keys.map((key) => `<Tag><Key>${key}</Key><Value>v</Value></Tag>`);
  return `<Tagging><TagSet>${items.join("")}</TagSet></Tagging>`;
}

export const cases = casesOf(
  "PutBucketTagging",
  [
    "a bucket without tags is NoSuchTagSet",
    async ({ ask }) => assertError(await ask("GET", "?tagging"), 404, "NoSuchTagSet"),
  ],
  [
    "keeps and replaces the set",
    async ({ ask }) => {
      assertEmpty(await ask("PUT", "?tagging", { body: toBody(["a", "b"]) }), 204);
      assertEmpty(await ask("PUT", "?tagging", { body: toBody(["c"]) }), 204);
      const found = readResult(await ask("GET", "?tagging"), "Tagging");
      assert.deepEqual(found.texts("TagSet/Tag/Key"), ["c"]);
    },
  ],
  [
    "DELETE removes the set",
    async ({ ask, must }) => {
      await must("PUT", "?tagging", { body: toBody(["a"]) });
      assertEmpty(await ask("DELETE", "?tagging"), 204);
      assertError(await ask("GET", "?tagging"), 404, "NoSuchTagSet");
    },
  ],
  [
    "takes fifty tags and refuses more",
    async ({ ask }) => {
      const keys = Array.from({ length: 51 }, (_, index) => `k${index}`);
      assertEmpty(await ask("PUT", "?tagging", { body: toBody(keys.slice(1)) }), 204);
      assert.equal((await ask("PUT", "?tagging", { body: toBody(keys) })).status, 400);
    },
  ],
  [
    "InvalidTag for a repeated key",
    async ({ ask }) => {
      assertError(await ask("PUT", "?tagging", { body: toBody(["a", "a"]) }), 400, "InvalidTag");
    },
  ],
  [
    "NoSuchBucket where the bucket is not there",
    async ({ client, bucket }) => {
      assertError(await client.send("GET", `/${bucket}-not?tagging`), 404, "NoSuchBucket");
    },
  ],
);
