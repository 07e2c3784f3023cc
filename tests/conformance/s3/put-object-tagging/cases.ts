// PutObjectTagging, GetObjectTagging, DeleteObjectTagging: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectTagging.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult } from "../case.ts";

type Tag = readonly [key: string, value: string];

function toBody(tags: readonly Tag[]): string {
  const items = tags.map(([key, value]) => `<Tag><Key>${key}</Key><Value>${value}</Value></Tag>`);
  return `<Tagging xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><TagSet>${items.join("")}</TagSet></Tagging>`;
}

const TEN: readonly Tag[] = Array.from({ length: 10 }, (_, index) => [`k${index}`, `v${index}`]);

export const cases = casesOf(
  "PutObjectTagging",
  [
    "replaces all tags",
    async ({ ask, must, put }) => {
      await put("key", "x", { "x-amz-tagging": "old=1" });
      assertEmpty(await ask("PUT", "/key?tagging", { body: toBody([["new", "2"]]) }), 200);
      const found = readResult(await must("GET", "/key?tagging"), "Tagging");
      assert.deepEqual(found.texts("TagSet/Tag/Key"), ["new"]);
      assert.deepEqual(found.texts("TagSet/Tag/Value"), ["2"]);
    },
  ],
  [
    "an object without tags has an empty set",
    async ({ ask, put }) => {
      await put("key", "x");
      const found = readResult(await ask("GET", "/key?tagging"), "Tagging");
      assert.equal(found.all("TagSet").length, 1);
      assert.deepEqual(found.all("TagSet/Tag"), []);
    },
  ],
  [
    "DELETE removes all tags and answers 204",
    async ({ ask, put }) => {
      await put("key", "x", { "x-amz-tagging": "a=1" });
      assertEmpty(await ask("DELETE", "/key?tagging"), 204);
      assert.deepEqual((await ask("GET", "/key?tagging")).document.all("TagSet/Tag"), []);
      assert.equal((await ask("GET", "/key")).text, "x");
    },
  ],
  [
    "takes ten tags of the longest keys and values",
    async ({ ask, put }) => {
      await put("key", "x");
      const tags = TEN.map(([key, value]): Tag => [key.padEnd(128, "k"), value.padEnd(256, "v")]);
      assertEmpty(await ask("PUT", "/key?tagging", { body: toBody(tags) }), 200);
      assert.equal((await ask("HEAD", "/key")).headers["x-amz-tagging-count"], "10");
    },
  ],
  [
    "BadRequest for more than ten tags, and changes nothing",
    async ({ ask, put }) => {
      await put("key", "x", { "x-amz-tagging": "a=1" });
      const body = toBody([...TEN, ["k10", "v"]]);
      assertError(await ask("PUT", "/key?tagging", { body }), 400, "BadRequest");
      assert.deepEqual((await ask("GET", "/key?tagging")).document.texts("TagSet/Tag/Key"), ["a"]);
    },
  ],
  [
    "InvalidTag for keys and values that are too long, empty keys, repeated ones and reserved ones",
    async ({ ask, put }) => {
      await put("key", "x");
      const sets: Tag[][] = [
        [["k".repeat(129), "v"]],
        [["k", "v".repeat(257)]],
        [["", "v"]],
        [
          ["k", "1"],
          ["k", "2"],
        ],
        [["aws:k", "v"]],
        [["k", "a&amp;b"]],
      ];
      for (const tags of sets) {
        const answer = await ask("PUT", "/key?tagging", { body: toBody(tags) });
        assertError(answer, 400, "InvalidTag");
      }
    },
  ],
  [
    "takes an empty value, letters of any script and the signs that the reference lists",
    async ({ ask, put }) => {
      await put("key", "x");
      const tags: Tag[] = [
        ["empty", ""],
        ["schlüssel ключ 鍵", "+-=._:/@ 1"],
      ];
      assertEmpty(await ask("PUT", "/key?tagging", { body: toBody(tags) }), 200);
      const { document } = await ask("GET", "/key?tagging");
      assert.deepEqual(document.texts("TagSet/Tag/Value"), ["", "+-=._:/@ 1"]);
      assert.equal(document.texts("TagSet/Tag/Key")[1], "schlüssel ключ 鍵");
    },
  ],
  [
    "a tag may be named like a member that every object has",
    async ({ ask, put }) => {
      await put("key", "x");
      const tags: Tag[] = [
        ["__proto__", "1"],
        ["constructor", "2"],
      ];
      assertEmpty(await ask("PUT", "/key?tagging", { body: toBody(tags) }), 200);
      const { document } = await ask("GET", "/key?tagging");
      assert.deepEqual(document.texts("TagSet/Tag/Key").toSorted(), ["__proto__", "constructor"]);
    },
  ],
  [
    "MalformedXML for what is no set of tags",
    async ({ ask, put }) => {
      await put("key", "x");
      const bodies = [
        "x",
        "<Tagging/>",
        "<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>",
        "<TagSet/>",
      ];
      for (const body of bodies) {
        assertError(await ask("PUT", "/key?tagging", { body }), 400, "MalformedXML");
      }
    },
  ],
  [
    "NoSuchKey for an object that is not there",
    async ({ ask }) => {
      const body = toBody([["a", "1"]]);
      assertError(await ask("PUT", "/key?tagging", { body }), 404, "NoSuchKey");
      assertError(await ask("GET", "/key?tagging"), 404, "NoSuchKey");
      assertError(await ask("DELETE", "/key?tagging"), 404, "NoSuchKey");
    },
  ],
  [
    "tags the version that is named",
    async ({ ask, must, put, setVersioning }) => {
      await setVersioning("Enabled");
      const first = (await put("key", "1")).headers["x-amz-version-id"];
      await put("key", "2");
      await must("PUT", `/key?tagging&versionId=${first}`, { body: toBody([["a", "1"]]) });
      const tagged = await ask("GET", `/key?tagging&versionId=${first}`);
      assert.deepEqual(tagged.document.texts("TagSet/Tag/Key"), ["a"]);
      assert.equal(tagged.headers["x-amz-version-id"], first);
      assert.deepEqual((await ask("GET", "/key?tagging")).document.all("TagSet/Tag"), []);
    },
  ],
  [
    "MethodNotAllowed for a delete marker",
    async ({ ask, must, put, setVersioning }) => {
      await setVersioning("Enabled");
      await put("key", "1");
      const marker = (await must("DELETE", "/key")).headers["x-amz-version-id"];
      const answer = await ask("GET", `/key?tagging&versionId=${marker}`);
      assertError(answer, 405, "MethodNotAllowed");
    },
  ],
  [
    "a permission to put objects is none to put tags with them",
    async ({ ask, bucket, createUser }) => {
      const Resource = `arn:aws:s3:::${bucket}/*`;
      const as = await createUser({ Effect: "Allow", Action: "s3:PutObject", Resource });
      const headers = { "x-amz-tagging": "a=1" };
      assertError(await ask("PUT", "/key", { as, headers }), 403, "AccessDenied");
      assertEmpty(await ask("PUT", "/key", { as }), 200);
    },
  ],
  [
    "an empty header is no tags",
    async ({ ask, put }) => {
      await put("key", "x", { "x-amz-tagging": "" });
      assert.deepEqual((await ask("GET", "/key?tagging")).document.all("TagSet/Tag"), []);
    },
  ],
  [
    "a header may bring a key without a value, and letters that are not encoded",
    async ({ ask, put }) => {
      const text = Buffer.from("alone&farbe=grün").toString("latin1");
      await put("key", "x", { "x-amz-tagging": text });
      const { document } = await ask("GET", "/key?tagging");
      assert.deepEqual(document.texts("TagSet/Tag/Key"), ["alone", "farbe"]);
      assert.deepEqual(document.texts("TagSet/Tag/Value"), ["", "grün"]);
    },
  ],
  [
    "InvalidArgument for a header that repeats a key, or is not encoded as a query is",
    async ({ ask }) => {
      for (const tagging of ["a=1&a=2", "a=%zz"]) {
        const answer = await ask("PUT", "/key", { headers: { "x-amz-tagging": tagging } });
        assertError(answer, 400, "InvalidArgument");
        assert.equal(answer.document.get("ArgumentName"), "x-amz-tagging");
      }
    },
  ],
);
