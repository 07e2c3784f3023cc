// Encryption with customer-provided keys:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/ServerSideEncryptionCustomerKeys.html
import assert from "node:assert/strict";
import { assertError, casesOf, digest, md5 } from "../case.ts";
import { PART, askToComplete, begin, putPart } from "../upload.ts";

const NAME = "x-amz-server-side-encryption-customer";

function toHeaders(letter: string, name = NAME): Record<string, string> {
  const key = Buffer.alloc(32, letter);
  return {
    [`${name}-algorithm`]: "AES256",
    [`${name}-key`]: key.toString("base64"),
    [`${name}-key-md5`]: digest("md5", key),
  };
}

const KEY = toHeaders("k");
const OTHER = toHeaders("o");

export const cases = casesOf(
  "Encryption with keys of the customer",
  [
    "answers algorithm and MD5 of the key, never the key",
    async ({ put }) => {
      const { headers } = await put("key", "hello", KEY);
      assert.equal(headers[`${NAME}-algorithm`], "AES256");
      assert.equal(headers[`${NAME}-key-md5`], KEY[`${NAME}-key-md5`]);
      assert.equal(headers[`${NAME}-key`], undefined);
    },
  ],
  [
    "gives the bytes to who brings the key",
    async ({ ask, put }) => {
      await put("key", "hello", KEY);
      const got = await ask("GET", "/key", { headers: KEY });
      assert.equal(got.text, "hello");
      assert.equal(got.headers[`${NAME}-algorithm`], "AES256");
      const head = await ask("HEAD", "/key", { headers: KEY });
      assert.equal(head.headers["content-length"], "5");
    },
  ],
  [
    "the ETag is not the MD5 of the bytes",
    async ({ put }) => {
      assert.notEqual((await put("key", "hello", KEY)).headers["etag"], `"${md5("hello")}"`);
    },
  ],
  [
    "InvalidRequest for reading without the key",
    async ({ ask, put }) => {
      await put("key", "hello", KEY);
      assertError(await ask("GET", "/key"), 400, "InvalidRequest");
      assert.equal((await ask("HEAD", "/key")).status, 400);
    },
  ],
  [
    "AccessDenied for another key",
    async ({ ask, put }) => {
      await put("key", "hello", KEY);
      assertError(await ask("GET", "/key", { headers: OTHER }), 403, "AccessDenied");
    },
  ],
  [
    "InvalidRequest for a key to what is not encrypted with one",
    async ({ ask, put }) => {
      await put("key", "hello");
      assertError(await ask("GET", "/key", { headers: KEY }), 400, "InvalidRequest");
    },
  ],
  [
    "InvalidArgument for an MD5 that does not fit, a key that is too short, and no MD5",
    async ({ ask }) => {
      const short = Buffer.alloc(16).toString("base64");
      const bad = [
        { ...KEY, [`${NAME}-key-md5`]: digest("md5", "other") },
        { ...KEY, [`${NAME}-key`]: short, [`${NAME}-key-md5`]: digest("md5", Buffer.alloc(16)) },
        { [`${NAME}-algorithm`]: "AES256", [`${NAME}-key`]: KEY[`${NAME}-key`]! },
        { [`${NAME}-algorithm`]: "AES256" },
      ];
      for (const headers of bad) {
        assertError(await ask("PUT", "/key", { headers, body: "x" }), 400, "InvalidArgument");
      }
    },
  ],
  [
    "refuses an algorithm that is not AES256",
    async ({ ask }) => {
      const headers = { ...KEY, [`${NAME}-algorithm`]: "AES128" };
      const answer = await ask("PUT", "/key", { headers, body: "x" });
      assertError(answer, 400, "InvalidEncryptionAlgorithmError");
    },
  ],
  [
    "refuses a customer's key beside a key of the store",
    async ({ ask }) => {
      const headers = { ...KEY, "x-amz-server-side-encryption": "AES256" };
      assertError(await ask("PUT", "/key", { headers, body: "x" }), 400, "InvalidArgument");
    },
  ],
  [
    "gives ranges",
    async ({ ask, put }) => {
      const body = Buffer.from(Array.from({ length: 200_000 }, (_, index) => (index * 3) % 255));
      await put("key", body, KEY);
      const got = await ask("GET", "/key", { headers: { ...KEY, range: "bytes=65000-140000" } });
      assert.equal(got.status, 206);
      assert.ok(got.body.equals(body.subarray(65_000, 140_001)));
    },
  ],
  [
    "copies from a key to another",
    async ({ ask, bucket, put }) => {
      await put("source", "hello", KEY);
      const source = { "x-amz-copy-source": `${bucket}/source` };
      assertError(await ask("PUT", "/copy", { headers: source }), 400, "InvalidRequest");
      const headers = {
        ...source,
        ...toHeaders("k", "x-amz-copy-source-server-side-encryption-customer"),
        ...OTHER,
      };
      assert.equal((await ask("PUT", "/copy", { headers })).status, 200);
      assert.equal((await ask("GET", "/copy", { headers: OTHER })).text, "hello");
      assertError(await ask("GET", "/copy", { headers: KEY }), 403, "AccessDenied");
    },
  ],
  [
    "uploads in parts need the key with each part",
    async (scene) => {
      const id = await begin(scene, "key", KEY);
      const target = `/key?partNumber=1&uploadId=${id}`;
      assertError(await scene.ask("PUT", target, { body: "x" }), 400, "InvalidRequest");
      const parts = [
        await putPart(scene, "key", id, 1, PART, KEY),
        await putPart(scene, "key", id, 2, "last", KEY),
      ];
      assert.equal((await askToComplete(scene, "key", id, parts)).status, 200);
      const got = await scene.ask("GET", "/key", { headers: KEY });
      assert.ok(got.body.equals(Buffer.concat([PART, Buffer.from("last")])));
      assertError(await scene.ask("GET", "/key"), 400, "InvalidRequest");
    },
  ],
  [
    "InvalidRequest for a part with another key than the upload's",
    async (scene) => {
      const id = await begin(scene, "key", KEY);
      const target = `/key?partNumber=1&uploadId=${id}`;
      const answer = await scene.ask("PUT", target, { body: "x", headers: OTHER });
      assertError(answer, 400, "InvalidRequest");
    },
  ],
  [
    "InvalidArgument for a key without its algorithm",
    async ({ ask }) => {
      const { [`${NAME}-algorithm`]: _, ...headers } = KEY;
      assertError(await ask("PUT", "/key", { headers }), 400, "InvalidArgument");
    },
  ],
  [
    "tags and the ACL of an object need no key, and an ACL lets others in who bring it",
    async ({ ask, must, put }) => {
      await put("key", "hello", { ...KEY, "x-amz-tagging": "a=1", "x-amz-acl": "public-read" });
      const tags = await must("GET", "/key?tagging");
      assert.equal(tags.document.get("TagSet/Tag/Key"), "a");
      assert.equal(
        (await must("GET", "/key?acl")).document.all("AccessControlList/Grant").length,
        2,
      );
      const got = await ask("GET", "/key", { as: "nobody", headers: KEY });
      assert.equal(got.text, "hello");
    },
  ],
);
