// ListBuckets: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListBuckets.html
import assert from "node:assert/strict";
import { assertError, casesOf, createName, readResult } from "../case.ts";

export const cases = casesOf(
  "ListBuckets",
  [
    "names the owner and each bucket with the time of its creation",
    async ({ client, bucket }) => {
      const list = readResult(await client.send("GET", "/"), "ListAllMyBucketsResult");
      assert.match(list.get("Owner/ID")!, /^[0-9a-f]{64}$/);
      assert.ok(list.get("Owner/DisplayName") !== undefined);
      const own = list.all("Buckets/Bucket").find((item) => item.get("Name") === bucket)!;
      assert.match(own.get("CreationDate")!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    },
  ],
  [
    "sorts by name",
    async ({ client }) => {
      const names = (await client.send("GET", "/")).document.texts("Buckets/Bucket/Name");
      assert.deepEqual(names, names.toSorted());
    },
  ],
  [
    "prefix narrows the list down",
    async ({ client, bucket }) => {
      const list = readResult(
        await client.send("GET", `/?prefix=${bucket}`),
        "ListAllMyBucketsResult",
      );
      assert.deepEqual(list.texts("Buckets/Bucket/Name"), [bucket]);
      assert.equal(list.get("Prefix"), bucket);
      assert.equal(list.get("Buckets/Bucket/BucketRegion"), "us-east-1");
    },
  ],
  [
    "max-buckets gives pages that a token continues",
    async ({ client }) => {
      const prefix = createName();
      const names = [1, 2, 3].map((number) => `${prefix}-${number}`);
      for (const name of names) await client.send("PUT", `/${name}`);
      const found: string[] = [];
      let token: string | undefined;
      for (let page = 0; page < 3; page += 1) {
        const next = token === undefined ? "" : `&continuation-token=${encodeURIComponent(token)}`;
        const answer = await client.send("GET", `/?prefix=${prefix}&max-buckets=1${next}`);
        found.push(...answer.document.texts("Buckets/Bucket/Name"));
        token = answer.document.get("ContinuationToken");
      }
      assert.deepEqual(found, names);
      assert.equal(token, undefined);
    },
  ],
  [
    "bucket-region narrows the list down",
    async ({ client, bucket }) => {
      const target = `/?prefix=${bucket}&bucket-region=`;
      const here = await client.send("GET", `${target}us-east-1`);
      assert.equal(here.document.texts("Buckets/Bucket/Name").length, 1);
      const elsewhere = await client.send("GET", `${target}eu-west-1`);
      assert.equal(elsewhere.document.texts("Buckets/Bucket/Name").length, 0);
    },
  ],
  [
    "InvalidArgument for a number of buckets that is none",
    async ({ client }) => {
      for (const max of ["0", "10001", "x"]) {
        assertError(await client.send("GET", `/?max-buckets=${max}`), 400, "InvalidArgument");
      }
    },
  ],
  [
    "AccessDenied without a signature",
    async ({ client }) => {
      assertError(await client.send("GET", "/", { as: "nobody" }), 403, "AccessDenied");
    },
  ],
  [
    "takes no other method",
    async ({ client }) => {
      for (const method of ["PUT", "DELETE", "POST"]) {
        assertError(await client.send(method, "/"), 405, "MethodNotAllowed");
      }
    },
  ],
  [
    "InvalidArgument for a token that was never given",
    async ({ client, bucket }) => {
      for (const token of [bucket, "%00", "x"]) {
        const answer = await client.send("GET", `/?continuation-token=${token}`);
        assertError(answer, 400, "InvalidArgument");
      }
    },
  ],
);
