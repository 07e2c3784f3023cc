// PutPublicAccessBlock and related operations:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult, type Scene } from "../case.ts";

type Switch =
  | "BlockPublicAcls"
  | "IgnorePublicAcls"
  | "BlockPublicPolicy"
  | "RestrictPublicBuckets";

function block({ ask }: Scene, ...names: Switch[]) {
  const inner = names.map((name) => `<${name}>true</${name}>`).join("");
  const body = `<PublicAccessBlockConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${inner}</PublicAccessBlockConfiguration>`;
  return ask("PUT", "?publicAccessBlock", { body });
}

function toPublicPolicy(bucket: string): string {
  return JSON.stringify({
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Principal: "*",
        Action: "s3:GetObject",
        Resource: `arn:aws:s3:::${bucket}/*`,
      },
    ],
  });
}

export const cases = casesOf(
  "PutPublicAccessBlock",
  [
    "a bucket without is NoSuchPublicAccessBlockConfiguration",
    async ({ ask }) => {
      const answer = await ask("GET", "?publicAccessBlock");
      assertError(answer, 404, "NoSuchPublicAccessBlockConfiguration");
    },
  ],
  [
    "keeps its switches, those that are not named being off",
    async (scene) => {
      assertEmpty(await block(scene, "BlockPublicAcls", "RestrictPublicBuckets"), 200);
      const found = readResult(
        await scene.ask("GET", "?publicAccessBlock"),
        "PublicAccessBlockConfiguration",
      );
      assert.equal(found.get("BlockPublicAcls"), "true");
      assert.equal(found.get("IgnorePublicAcls"), "false");
      assert.equal(found.get("BlockPublicPolicy"), "false");
      assert.equal(found.get("RestrictPublicBuckets"), "true");
    },
  ],
  [
    "DELETE removes it",
    async (scene) => {
      await block(scene, "BlockPublicAcls");
      assertEmpty(await scene.ask("DELETE", "?publicAccessBlock"), 204);
      const answer = await scene.ask("GET", "?publicAccessBlock");
      assertError(answer, 404, "NoSuchPublicAccessBlockConfiguration");
    },
  ],
  [
    "BlockPublicAcls refuses public lists, of the bucket and of objects",
    async (scene) => {
      await scene.put("key", "x");
      await block(scene, "BlockPublicAcls");
      const headers = { "x-amz-acl": "public-read" };
      assertError(await scene.ask("PUT", "?acl", { headers }), 403, "AccessDenied");
      assertError(await scene.ask("PUT", "/key?acl", { headers }), 403, "AccessDenied");
      assertError(await scene.ask("PUT", "/other", { headers }), 403, "AccessDenied");
      const own = { "x-amz-acl": "private" };
      assertEmpty(await scene.ask("PUT", "/key?acl", { headers: own }), 200);
    },
  ],
  [
    "IgnorePublicAcls takes from public lists what they gave",
    async (scene) => {
      await scene.put("key", "x", { "x-amz-acl": "public-read" });
      assert.equal((await scene.ask("GET", "/key", { as: "nobody" })).status, 200);
      await block(scene, "IgnorePublicAcls");
      assertError(await scene.ask("GET", "/key", { as: "nobody" }), 403, "AccessDenied");
    },
  ],
  [
    "BlockPublicPolicy refuses policies that let everyone in",
    async (scene) => {
      await block(scene, "BlockPublicPolicy");
      const body = toPublicPolicy(scene.bucket);
      assertError(await scene.ask("PUT", "?policy", { body }), 403, "AccessDenied");
    },
  ],
  [
    "RestrictPublicBuckets keeps everyone out whom a public policy lets in",
    async (scene) => {
      await scene.put("key", "x");
      await scene.must("PUT", "?policy", { body: toPublicPolicy(scene.bucket) });
      assert.equal((await scene.ask("GET", "/key", { as: "nobody" })).status, 200);
      await block(scene, "RestrictPublicBuckets");
      assertError(await scene.ask("GET", "/key", { as: "nobody" }), 403, "AccessDenied");
      assert.equal((await scene.ask("GET", "/key")).text, "x");
    },
  ],
  [
    "MalformedXML for switches that are neither true nor false, or not known",
    async ({ ask }) => {
      for (const inner of ["<BlockPublicAcls>yes</BlockPublicAcls>", "<BlockAll>true</BlockAll>"]) {
        const body = `<PublicAccessBlockConfiguration>${inner}</PublicAccessBlockConfiguration>`;
        assertError(await ask("PUT", "?publicAccessBlock", { body }), 400, "MalformedXML");
      }
    },
  ],
);
