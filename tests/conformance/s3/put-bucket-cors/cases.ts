// PutBucketCors, GetBucketCors, DeleteBucketCors: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketCors.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult } from "../case.ts";

const toBody = (...rules: string[]) =>
  `<CORSConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${rules.map((rule) => `<CORSRule>${rule}</CORSRule>`).join("")}</CORSConfiguration>`;

const SIMPLE = "<AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin>";

export const cases = casesOf(
  "PutBucketCors",
  [
    "a bucket without rules is NoSuchCORSConfiguration",
    async ({ ask, bucket }) => {
      const answer = await ask("GET", "?cors");
      assertError(answer, 404, "NoSuchCORSConfiguration");
      assert.equal(answer.document.get("BucketName"), bucket);
    },
  ],
  [
    "keeps all that a rule says",
    async ({ ask }) => {
      const body = toBody(
        "<ID>one</ID><AllowedHeader>X-Custom-*</AllowedHeader><AllowedMethod>GET</AllowedMethod>" +
          "<AllowedMethod>PUT</AllowedMethod><AllowedOrigin>https://a.example</AllowedOrigin>" +
          "<AllowedOrigin>https://*.b.example</AllowedOrigin><ExposeHeader>ETag</ExposeHeader>" +
          "<MaxAgeSeconds>60</MaxAgeSeconds>",
        SIMPLE,
      );
      assertEmpty(await ask("PUT", "?cors", { body }), 200);
      const found = readResult(await ask("GET", "?cors"), "CORSConfiguration");
      const [first, second] = found.all("CORSRule");
      assert.equal(first!.get("ID"), "one");
      assert.equal(first!.get("AllowedHeader"), "X-Custom-*");
      assert.deepEqual(first!.texts("AllowedMethod"), ["GET", "PUT"]);
      assert.deepEqual(first!.texts("AllowedOrigin"), ["https://a.example", "https://*.b.example"]);
      assert.equal(first!.get("ExposeHeader"), "ETag");
      assert.equal(first!.get("MaxAgeSeconds"), "60");
      assert.equal(second!.get("MaxAgeSeconds"), undefined);
    },
  ],
  [
    "DELETE removes the rules",
    async ({ ask, must }) => {
      await must("PUT", "?cors", { body: toBody(SIMPLE) });
      assertEmpty(await ask("DELETE", "?cors"), 204);
      assertError(await ask("GET", "?cors"), 404, "NoSuchCORSConfiguration");
    },
  ],
  [
    "InvalidRequest for a method that is none of S3's",
    async ({ ask }) => {
      const rule = SIMPLE.replace("GET", "PATCH");
      assertError(await ask("PUT", "?cors", { body: toBody(rule) }), 400, "InvalidRequest");
    },
  ],
  [
    "InvalidRequest for two wildcards in one origin",
    async ({ ask }) => {
      const rule = SIMPLE.replace(">*<", ">https://*.*.example<");
      assertError(await ask("PUT", "?cors", { body: toBody(rule) }), 400, "InvalidRequest");
    },
  ],
  [
    "InvalidRequest for what no header can be named, which would spoil every answer",
    async ({ ask }) => {
      for (const name of ["x-*", "a b", "a&#13;&#10;b: c", "\u2603"]) {
        const body = toBody(`${SIMPLE}<ExposeHeader>${name}</ExposeHeader>`);
        assertError(await ask("PUT", "?cors", { body }), 400, "InvalidRequest");
      }
    },
  ],
  [
    "MalformedXML for no rules, rules without origin or method, ages that are none, and what is no document",
    async ({ ask }) => {
      const bodies = [
        toBody(),
        toBody("<AllowedMethod>GET</AllowedMethod>"),
        toBody("<AllowedOrigin>*</AllowedOrigin>"),
        toBody(`${SIMPLE}<MaxAgeSeconds>long</MaxAgeSeconds>`),
        "x",
      ];
      for (const body of bodies) {
        assertError(await ask("PUT", "?cors", { body }), 400, "MalformedXML");
      }
    },
  ],
  [
    "takes a hundred rules and refuses more",
    async ({ ask }) => {
      const rules = Array.from({ length: 101 }, () => SIMPLE);
      assertEmpty(await ask("PUT", "?cors", { body: toBody(...rules.slice(1)) }), 200);
      assert.equal((await ask("PUT", "?cors", { body: toBody(...rules) })).status, 400);
    },
  ],
);
