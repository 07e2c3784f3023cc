// PutBucketEncryption, GetBucketEncryption, DeleteBucketEncryption: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketEncryption.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult } from "../case.ts";

const toBody = (inner: string) =>
  `<ServerSideEncryptionConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Rule><ApplyServerSideEncryptionByDefault>${inner}</ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>`;

const AES = toBody("<SSEAlgorithm>AES256</SSEAlgorithm>");

export const cases = casesOf(
  "PutBucketEncryption",
  [
    "a bucket without is ServerSideEncryptionConfigurationNotFoundError",
    async ({ ask }) => {
      const answer = await ask("GET", "?encryption");
      assertError(answer, 404, "ServerSideEncryptionConfigurationNotFoundError");
    },
  ],
  [
    "keeps the default and encrypts new objects by it",
    async ({ ask, put }) => {
      await put("before", "x");
      assertEmpty(await ask("PUT", "?encryption", { body: AES }), 200);
      const found = readResult(
        await ask("GET", "?encryption"),
        "ServerSideEncryptionConfiguration",
      );
      assert.equal(found.get("Rule/ApplyServerSideEncryptionByDefault/SSEAlgorithm"), "AES256");
      const stored = await put("after", "hello");
      assert.equal(stored.headers["x-amz-server-side-encryption"], "AES256");
      const got = await ask("GET", "/after");
      assert.equal(got.text, "hello");
      assert.equal(got.headers["x-amz-server-side-encryption"], "AES256");
      const old = await ask("HEAD", "/before");
      assert.equal(old.headers["x-amz-server-side-encryption"], undefined);
    },
  ],
  [
    "DELETE removes the default, and what is encrypted stays readable",
    async ({ ask, must, put }) => {
      await must("PUT", "?encryption", { body: AES });
      await put("key", "hello");
      assertEmpty(await ask("DELETE", "?encryption"), 204);
      assert.equal((await ask("GET", "/key")).text, "hello");
      assert.equal((await put("plain", "x")).headers["x-amz-server-side-encryption"], undefined);
    },
  ],
  [
    "refuses algorithms that it does not have",
    async ({ ask }) => {
      const layered = toBody("<SSEAlgorithm>aws:kms:dsse</SSEAlgorithm>");
      assertError(await ask("PUT", "?encryption", { body: layered }), 501, "NotImplemented");
      const other = toBody("<SSEAlgorithm>ROT13</SSEAlgorithm>");
      assert.equal((await ask("PUT", "?encryption", { body: other })).status, 400);
    },
  ],
  [
    "MalformedXML for what is no configuration",
    async ({ ask }) => {
      for (const body of ["x", "<ServerSideEncryptionConfiguration/>", toBody("")]) {
        assertError(await ask("PUT", "?encryption", { body }), 400, "MalformedXML");
      }
    },
  ],
  [
    "keeps the switch for bucket keys, which changes nothing here",
    async ({ ask }) => {
      const withKey = (value: string) =>
        AES.replace("</Rule>", `<BucketKeyEnabled>${value}</BucketKeyEnabled></Rule>`);
      for (const value of ["true", "false"]) {
        assertEmpty(await ask("PUT", "?encryption", { body: withKey(value) }), 200);
        const found = (await ask("GET", "?encryption")).document;
        assert.equal(found.get("Rule/BucketKeyEnabled"), value);
      }
      assertError(await ask("PUT", "?encryption", { body: withKey("on") }), 400, "MalformedXML");
    },
  ],
);
