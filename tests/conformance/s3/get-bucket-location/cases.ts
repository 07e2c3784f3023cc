// GetBucketLocation: https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLocation.html
import assert from "node:assert/strict";
import { assertError, casesOf, readResult } from "../case.ts";

export const cases = casesOf(
  "GetBucketLocation",
  [
    "is empty for the first region",
    async ({ ask }) => {
      const location = readResult(await ask("GET", "?location"), "LocationConstraint");
      assert.equal(location.text, "");
      assert.equal(location.children.length, 0);
    },
  ],
  [
    "takes a request that is signed for another region",
    async ({ ask }) => {
      assert.equal((await ask("GET", "?location", { region: "eu-north-1" })).status, 200);
    },
  ],
  [
    "NoSuchBucket where the bucket is not there",
    async ({ client, bucket }) => {
      assertError(await client.send("GET", `/${bucket}-not?location`), 404, "NoSuchBucket");
    },
  ],
);
