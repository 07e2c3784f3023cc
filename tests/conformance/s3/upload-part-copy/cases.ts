// UploadPartCopy: https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPartCopy.html
import assert from "node:assert/strict";
import { assertError, casesOf, md5, readResult, type Scene } from "../case.ts";
import { PART, begin, complete, putPart, type Part } from "../upload.ts";

function copyPart(
  { ask, bucket }: Scene,
  id: string,
  number: number,
  source: string,
  headers: Record<string, string> = {},
) {
  return ask("PUT", `/key?partNumber=${number}&uploadId=${id}`, {
    headers: { "x-amz-copy-source": `${bucket}/${source}`, ...headers },
  });
}

export const cases = casesOf(
  "UploadPartCopy",
  [
    "copies a whole object and answers ETag and time",
    async (scene) => {
      await scene.put("source", "hello");
      const id = await begin(scene, "key");
      const result = readResult(await copyPart(scene, id, 1, "source"), "CopyPartResult");
      const etag = result.get("ETag")!;
      assert.equal(etag, `"${md5("hello")}"`);
      assert.match(result.get("LastModified")!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      await complete(scene, "key", id, [{ number: 1, etag }]);
      assert.equal((await scene.ask("GET", "/key")).text, "hello");
    },
  ],
  [
    "copies a range",
    async (scene) => {
      await scene.put("source", "0123456789");
      const id = await begin(scene, "key");
      const headers = { "x-amz-copy-source-range": "bytes=2-5" };
      const result = readResult(await copyPart(scene, id, 1, "source", headers), "CopyPartResult");
      assert.equal(result.get("ETag"), `"${md5("2345")}"`);
    },
  ],
  [
    "joins copied parts and uploaded ones",
    async (scene) => {
      await scene.put("source", Buffer.concat([PART, Buffer.from("rest")]));
      const id = await begin(scene, "key");
      const range = { "x-amz-copy-source-range": `bytes=0-${PART.length - 1}` };
      const first = await copyPart(scene, id, 1, "source", range);
      const parts: Part[] = [
        { number: 1, etag: first.document.get("ETag")! },
        await putPart(scene, "key", id, 2, "end"),
      ];
      await complete(scene, "key", id, parts);
      const got = await scene.ask("GET", "/key");
      assert.ok(got.body.equals(Buffer.concat([PART, Buffer.from("end")])));
    },
  ],
  [
    "InvalidArgument for a range of another form",
    async (scene) => {
      await scene.put("source", "0123456789");
      const id = await begin(scene, "key");
      for (const range of ["0-2", "bytes=0", "bytes=hello-world", "bytes=0-bar", "bytes=0-2,3-5"]) {
        const answer = await copyPart(scene, id, 1, "source", { "x-amz-copy-source-range": range });
        assertError(answer, 400, "InvalidArgument");
      }
    },
  ],
  [
    "refuses a range that goes beyond the end",
    async (scene) => {
      await scene.put("source", "01234");
      const id = await begin(scene, "key");
      for (const range of ["bytes=0-21", "bytes=10-12"]) {
        const answer = await copyPart(scene, id, 1, "source", { "x-amz-copy-source-range": range });
        assertError(answer, 400, "InvalidArgument");
      }
    },
  ],
  [
    "NoSuchKey for a source that is not there",
    async (scene) => {
      const id = await begin(scene, "key");
      assertError(await copyPart(scene, id, 1, "missing"), 404, "NoSuchKey");
    },
  ],
  [
    "NoSuchUpload for an upload that is not there",
    async (scene) => {
      await scene.put("source", "x");
      assertError(await copyPart(scene, "made-up", 1, "source"), 404, "NoSuchUpload");
    },
  ],
  [
    "copies a version that is named",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const version = (await scene.put("source", "1")).headers["x-amz-version-id"]!;
      await scene.put("source", "2");
      const id = await begin(scene, "key");
      const answer = await copyPart(scene, id, 1, `source?versionId=${version}`);
      assert.equal(answer.headers["x-amz-copy-source-version-id"], version);
      assert.equal(answer.document.get("ETag"), `"${md5("1")}"`);
    },
  ],
  [
    "looks at conditions on the source",
    async (scene) => {
      const etag = (await scene.put("source", "x")).headers["etag"]!;
      const id = await begin(scene, "key");
      const name = "x-amz-copy-source-if-match";
      const bad = await copyPart(scene, id, 1, "source", { [name]: '"other"' });
      assertError(bad, 412, "PreconditionFailed");
      assert.equal((await copyPart(scene, id, 1, "source", { [name]: etag })).status, 200);
      const none = { "x-amz-copy-source-if-none-match": etag };
      assertError(await copyPart(scene, id, 1, "source", none), 412, "PreconditionFailed");
    },
  ],
  [
    "AccessDenied for who may not read the source",
    async (scene) => {
      await scene.put("secret", "x");
      const Resource = `arn:aws:s3:::${scene.bucket}/key`;
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:*", Resource });
      const id = await begin(scene, "key");
      const answer = await scene.ask("PUT", `/key?partNumber=1&uploadId=${id}`, {
        as,
        headers: { "x-amz-copy-source": `${scene.bucket}/secret` },
      });
      assertError(answer, 403, "AccessDenied");
    },
  ],
);
