// HeadObject: https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
import assert from "node:assert/strict";
import { assertEmpty, casesOf, md5 } from "../case.ts";

export const cases = casesOf(
  "HeadObject",
  [
    "answers the headers of GET without the body",
    async ({ ask, put }) => {
      await put("key", "hello", { "content-type": "text/plain", "x-amz-meta-a": "1" });
      const head = await ask("HEAD", "/key");
      const get = await ask("GET", "/key");
      assertEmpty(head, 200);
      const changing = /request-id|^date$|^connection$|^keep-alive$/;
      const pick = (headers: object) =>
        Object.entries(headers).filter(([name]) => !changing.test(name));
      assert.deepEqual(pick(head.headers), pick(get.headers));
      assert.equal(head.headers["content-length"], "5");
    },
  ],
  [
    "404 without a body for what is not there",
    async ({ ask }) => {
      const answer = await ask("HEAD", "/key");
      assertEmpty(answer, 404);
      assert.ok(answer.headers["x-amz-request-id"] !== undefined);
    },
  ],
  [
    "404 without a body where the bucket is not there",
    async ({ client, bucket }) => {
      assertEmpty(await client.send("HEAD", `/${bucket}-not/key`), 404);
    },
  ],
  [
    "403 without a body for a wrong signature",
    async ({ ask, client }) => {
      const as = { ...client.root, secretKey: "wrong" };
      assertEmpty(await ask("HEAD", "/key", { as }), 403);
    },
  ],
  [
    "a range is 206 with the length of the range",
    async ({ ask, put }) => {
      await put("key", "0123456789");
      const answer = await ask("HEAD", "/key", { headers: { range: "bytes=1-3" } });
      assertEmpty(answer, 206);
      assert.equal(answer.headers["content-length"], "3");
      assert.equal(answer.headers["content-range"], "bytes 1-3/10");
    },
  ],
  [
    "416 without a body for a range beyond the end",
    async ({ ask, put }) => {
      await put("key", "0123456789");
      assertEmpty(await ask("HEAD", "/key", { headers: { range: "bytes=10-" } }), 416);
    },
  ],
  [
    "conditions are answered with 304 and 412 without a body",
    async ({ ask, put }) => {
      const etag = (await put("key", "x")).headers["etag"]!;
      assertEmpty(await ask("HEAD", "/key", { headers: { "if-none-match": etag } }), 304);
      assertEmpty(await ask("HEAD", "/key", { headers: { "if-match": '"other"' } }), 412);
      assertEmpty(await ask("HEAD", "/key", { headers: { "if-match": etag } }), 200);
    },
  ],
  [
    "tells checksums to who asks for them",
    async ({ ask, put }) => {
      await put("key", "123456789", { "x-amz-checksum-crc32c": "4waSgw==" });
      const headers = { "x-amz-checksum-mode": "ENABLED" };
      const answer = await ask("HEAD", "/key", { headers });
      assert.equal(answer.headers["x-amz-checksum-crc32c"], "4waSgw==");
      assert.equal((await ask("HEAD", "/key")).headers["x-amz-checksum-crc32c"], undefined);
    },
  ],
  [
    "the response-* parameters override headers",
    async ({ ask, put }) => {
      await put("key", "x");
      const { headers } = await ask("HEAD", "/key?response-content-type=text%2Fcsv");
      assert.equal(headers["content-type"], "text/csv");
    },
  ],
  [
    "part 1 of an object in one piece is all of it",
    async ({ ask, put }) => {
      await put("key", "hello");
      const answer = await ask("HEAD", "/key?partNumber=1");
      assertEmpty(answer, 206);
      assert.equal(answer.headers["content-length"], "5");
      assert.equal(answer.headers["x-amz-mp-parts-count"], undefined);
    },
  ],
  [
    "names the length of a large object",
    async ({ ask, put }) => {
      const body = Buffer.alloc(2_000_000, "a");
      await put("key", body);
      const { headers } = await ask("HEAD", "/key");
      assert.equal(headers["content-length"], "2000000");
      assert.equal(headers["etag"], `"${md5(body)}"`);
    },
  ],
);
