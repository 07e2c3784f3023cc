// AbortMultipartUpload: https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, md5 } from "../case.ts";
import { askToComplete, begin, putPart, upload } from "../upload.ts";

export const cases = casesOf(
  "AbortMultipartUpload",
  [
    "ends the upload and answers 204",
    async (scene) => {
      const id = await begin(scene, "key");
      const part = await putPart(scene, "key", id, 1, "x");
      assertEmpty(await scene.ask("DELETE", `/key?uploadId=${id}`), 204);
      assertError(await askToComplete(scene, "key", id, [part]), 404, "NoSuchUpload");
      assertError(await scene.ask("GET", `/key?uploadId=${id}`), 404, "NoSuchUpload");
    },
  ],
  [
    "NoSuchUpload for an upload that is not there",
    async ({ ask }) => {
      assertError(await ask("DELETE", "/key?uploadId=made-up"), 404, "NoSuchUpload");
    },
  ],
  [
    "NoSuchUpload for an upload of another key, which goes on",
    async (scene) => {
      const id = await begin(scene, "key");
      assertError(await scene.ask("DELETE", `/other?uploadId=${id}`), 404, "NoSuchUpload");
      assert.equal((await scene.ask("GET", `/key?uploadId=${id}`)).status, 200);
    },
  ],
  [
    "leaves the object alone that the upload has become",
    async (scene) => {
      const { id } = await upload(scene, "key", ["x"]);
      const answer = await scene.ask("DELETE", `/key?uploadId=${id}`);
      assert.ok(answer.status === 204 || answer.status === 404);
      assert.equal((await scene.ask("GET", "/key")).text, "x");
    },
  ],
  [
    "leaves the object alone that was there before",
    async (scene) => {
      await scene.put("key", "old");
      const id = await begin(scene, "key");
      await scene.must("DELETE", `/key?uploadId=${id}`);
      assert.equal((await scene.ask("GET", "/key")).headers["etag"], `"${md5("old")}"`);
    },
  ],
  [
    "AccessDenied for who may put objects but not abort",
    async (scene) => {
      const id = await begin(scene, "key");
      const Resource = `arn:aws:s3:::${scene.bucket}/*`;
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:PutObject", Resource });
      assertError(await scene.ask("DELETE", `/key?uploadId=${id}`, { as }), 403, "AccessDenied");
    },
  ],
);
