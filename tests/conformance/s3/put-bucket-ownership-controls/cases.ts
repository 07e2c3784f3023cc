// PutBucketOwnershipControls and related operations:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/about-object-ownership.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult, type Scene } from "../case.ts";

function own({ ask }: Scene, value: string) {
  const body = `<OwnershipControls xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Rule><ObjectOwnership>${value}</ObjectOwnership></Rule></OwnershipControls>`;
  return ask("PUT", "?ownershipControls", { body });
}

export const cases = casesOf(
  "PutBucketOwnershipControls",
  [
    "a bucket without is OwnershipControlsNotFoundError",
    async ({ ask }) => {
      assertError(await ask("GET", "?ownershipControls"), 404, "OwnershipControlsNotFoundError");
    },
  ],
  [
    "keeps each of the three",
    async (scene) => {
      for (const value of ["BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"]) {
        assertEmpty(await own(scene, value), 200);
        const found = readResult(await scene.ask("GET", "?ownershipControls"), "OwnershipControls");
        assert.equal(found.get("Rule/ObjectOwnership"), value);
      }
    },
  ],
  [
    "DELETE removes it",
    async (scene) => {
      await own(scene, "ObjectWriter");
      assertEmpty(await scene.ask("DELETE", "?ownershipControls"), 204);
      const answer = await scene.ask("GET", "?ownershipControls");
      assertError(answer, 404, "OwnershipControlsNotFoundError");
    },
  ],
  [
    "MalformedXML for another value, and for no rule",
    async (scene) => {
      assertError(await own(scene, "Mine"), 400, "MalformedXML");
      const body = "<OwnershipControls/>";
      assertError(await scene.ask("PUT", "?ownershipControls", { body }), 400, "MalformedXML");
    },
  ],
  [
    "enforced, lists are AccessControlListNotSupported but for those that change nothing",
    async (scene) => {
      await scene.put("key", "x");
      await own(scene, "BucketOwnerEnforced");
      const code = "AccessControlListNotSupported";
      const headers = { "x-amz-acl": "public-read" };
      assertError(await scene.ask("PUT", "/key?acl", { headers }), 400, code);
      assertError(await scene.ask("PUT", "/other", { headers }), 400, code);
      assertError(await scene.ask("PUT", "?acl", { headers }), 400, code);
      const harmless = { "x-amz-acl": "bucket-owner-full-control" };
      assertEmpty(await scene.ask("PUT", "/other", { headers: harmless }), 200);
      assert.equal((await scene.ask("GET", "/key?acl")).status, 200);
    },
  ],
  [
    "enforced, lists of before give nothing",
    async (scene) => {
      await scene.put("key", "x", { "x-amz-acl": "public-read" });
      assert.equal((await scene.ask("GET", "/key", { as: "nobody" })).status, 200);
      await own(scene, "BucketOwnerEnforced");
      assertError(await scene.ask("GET", "/key", { as: "nobody" }), 403, "AccessDenied");
    },
  ],
  [
    "InvalidBucketAclWithObjectOwnership for enforcing it on a bucket whose list lets others in",
    async (scene) => {
      await scene.must("PUT", "?acl", { headers: { "x-amz-acl": "public-read" } });
      const answer = await own(scene, "BucketOwnerEnforced");
      assertError(answer, 400, "InvalidBucketAclWithObjectOwnership");
    },
  ],
  [
    "enforced, lists of the bucket and of objects are not put at all",
    async (scene) => {
      await scene.put("key", "x");
      await own(scene, "BucketOwnerEnforced");
      for (const acl of ["private", "bucket-owner-full-control"]) {
        for (const target of ["?acl", "/key?acl"]) {
          const answer = await scene.ask("PUT", target, { headers: { "x-amz-acl": acl } });
          assertError(answer, 400, "AccessControlListNotSupported");
        }
      }
    },
  ],
  [
    "enforced, objects are put with the owner's full control, in either form, and no other list",
    async (scene) => {
      await own(scene, "BucketOwnerEnforced");
      const id = (await scene.ask("GET", "?acl")).document.get("Owner/ID")!;
      const headers = { "x-amz-grant-full-control": `id="${id}"` };
      assertEmpty(await scene.ask("PUT", "/key", { headers }), 200);
      const others: Record<string, string>[] = [
        { "x-amz-acl": "private" },
        { "x-amz-grant-read": `id="${id}"` },
      ];
      for (const other of others) {
        const answer = await scene.ask("PUT", "/key", { headers: other });
        assertError(answer, 400, "AccessControlListNotSupported");
      }
    },
  ],
  [
    "enforced, lists of before are told as the owner's full control",
    async (scene) => {
      await scene.put("key", "x", { "x-amz-acl": "public-read" });
      const list = async () =>
        (await scene.must("GET", "/key?acl")).document.texts("AccessControlList/Grant/Permission");
      assert.deepEqual(await list(), ["FULL_CONTROL", "READ"]);
      await own(scene, "BucketOwnerEnforced");
      assert.deepEqual(await list(), ["FULL_CONTROL"]);
    },
  ],
);
