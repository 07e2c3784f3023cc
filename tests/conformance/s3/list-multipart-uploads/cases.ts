// ListMultipartUploads: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html
import assert from "node:assert/strict";
import { assertError, casesOf, readResult, type Scene } from "../case.ts";
import { begin, complete, putPart } from "../upload.ts";

async function list({ ask }: Scene, query = "") {
  return readResult(await ask("GET", `?uploads${query}`), "ListMultipartUploadsResult");
}

export const cases = casesOf(
  "ListMultipartUploads",
  [
    "of a bucket without uploads is empty",
    async (scene) => {
      const found = await list(scene);
      assert.equal(found.get("Bucket"), scene.bucket);
      assert.equal(found.get("KeyMarker"), "");
      assert.equal(found.get("UploadIdMarker"), "");
      assert.equal(found.get("MaxUploads"), "1000");
      assert.equal(found.get("IsTruncated"), "false");
      assert.deepEqual(found.all("Upload"), []);
    },
  ],
  [
    "tells key, id, owner, storage class and time of each upload",
    async (scene) => {
      const id = await begin(scene, "key", { "x-amz-storage-class": "STANDARD_IA" });
      const [item] = (await list(scene)).all("Upload");
      assert.equal(item!.get("Key"), "key");
      assert.equal(item!.get("UploadId"), id);
      assert.equal(item!.get("StorageClass"), "STANDARD_IA");
      assert.match(item!.get("Owner/ID")!, /^[0-9a-f]{64}$/);
      assert.ok(item!.get("Initiator/ID") !== undefined);
      assert.match(item!.get("Initiated")!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    },
  ],
  [
    "sorts by key, and uploads of a key by their beginning",
    async (scene) => {
      const ids = [await begin(scene, "b"), await begin(scene, "a"), await begin(scene, "a")];
      const found = await list(scene);
      assert.deepEqual(found.texts("Upload/Key"), ["a", "a", "b"]);
      assert.deepEqual(found.texts("Upload/UploadId"), [ids[1], ids[2], ids[0]]);
    },
  ],
  [
    "does not name uploads that are complete or aborted",
    async (scene) => {
      const done = await begin(scene, "a");
      await complete(scene, "a", done, [await putPart(scene, "a", done, 1, "x")]);
      const aborted = await begin(scene, "b");
      await scene.must("DELETE", `/b?uploadId=${aborted}`);
      assert.deepEqual((await list(scene)).all("Upload"), []);
    },
  ],
  [
    "prefix and delimiter work as in other listings",
    async (scene) => {
      for (const key of ["a/1", "a/2/3", "b"]) await begin(scene, key);
      const found = await list(scene, "&prefix=a/&delimiter=/");
      assert.deepEqual(found.texts("Upload/Key"), ["a/1"]);
      assert.deepEqual(found.texts("CommonPrefixes/Prefix"), ["a/2/"]);
      assert.equal(found.get("Prefix"), "a/");
      assert.equal(found.get("Delimiter"), "/");
    },
  ],
  [
    "max-uploads gives pages that both markers continue",
    async (scene) => {
      const ids = [await begin(scene, "a"), await begin(scene, "a"), await begin(scene, "b")];
      const seen: string[] = [];
      let markers = "";
      for (let page = 0; page < 3; page += 1) {
        const found = await list(scene, `&max-uploads=1${markers}`);
        seen.push(...found.texts("Upload/UploadId"));
        assert.equal(found.get("IsTruncated"), String(page < 2));
        markers = `&key-marker=${found.get("NextKeyMarker")}&upload-id-marker=${found.get("NextUploadIdMarker")}`;
      }
      assert.deepEqual(seen, ids);
    },
  ],
  [
    "encoding-type=url encodes keys",
    async (scene) => {
      await begin(scene, "a%20b");
      const found = await list(scene, "&encoding-type=url");
      assert.equal(found.get("Upload/Key"), "a%20b");
      assert.equal(found.get("EncodingType"), "url");
    },
  ],
  [
    "InvalidArgument for a max-uploads that is no number",
    async ({ ask }) => {
      assertError(await ask("GET", "?uploads&max-uploads=x"), 400, "InvalidArgument");
    },
  ],
  [
    "AccessDenied without a signature",
    async ({ ask }) => {
      assertError(await ask("GET", "?uploads", { as: "nobody" }), 403, "AccessDenied");
    },
  ],
  [
    "a key marker that is shorter than the delimiter is a key like any other",
    async ({ must }) => {
      for (const key of ["a", "a-", "a/b", "b"]) await must("POST", `/${key}?uploads`);
      const page = await must("GET", "?uploads&key-marker=a&delimiter=/b");
      assert.deepEqual(page.document.texts("Upload/Key"), ["a-", "b"]);
      assert.deepEqual(page.document.texts("CommonPrefixes/Prefix"), ["a/b"]);
    },
  ],
);
