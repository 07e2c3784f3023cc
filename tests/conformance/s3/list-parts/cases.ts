// ListParts: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListParts.html
import assert from "node:assert/strict";
import { assertError, casesOf, digest, md5, readResult, type Scene } from "../case.ts";
import { begin, putPart } from "../upload.ts";

async function list({ ask }: Scene, id: string, query = "") {
  return readResult(await ask("GET", `/key?uploadId=${id}${query}`), "ListPartsResult");
}

export const cases = casesOf(
  "ListParts",
  [
    "of a new upload tells what it is and has no parts",
    async (scene) => {
      const id = await begin(scene, "key");
      const found = await list(scene, id);
      assert.equal(found.get("Bucket"), scene.bucket);
      assert.equal(found.get("Key"), "key");
      assert.equal(found.get("UploadId"), id);
      assert.equal(found.get("StorageClass"), "STANDARD");
      assert.equal(found.get("MaxParts"), "1000");
      assert.equal(found.get("IsTruncated"), "false");
      assert.match(found.get("Owner/ID")!, /^[0-9a-f]{64}$/);
      assert.ok(found.get("Initiator/ID") !== undefined);
      assert.deepEqual(found.all("Part"), []);
    },
  ],
  [
    "tells number, time, ETag and size of each part, by number",
    async (scene) => {
      const id = await begin(scene, "key");
      await putPart(scene, "key", id, 3, "three");
      await putPart(scene, "key", id, 1, "x");
      const found = await list(scene, id);
      assert.deepEqual(found.texts("Part/PartNumber"), ["1", "3"]);
      assert.deepEqual(found.texts("Part/Size"), ["1", "5"]);
      assert.deepEqual(found.texts("Part/ETag"), [`"${md5("x")}"`, `"${md5("three")}"`]);
      assert.match(found.texts("Part/LastModified")[0]!, /^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/);
    },
  ],
  [
    "max-parts gives pages that a marker continues",
    async (scene) => {
      const id = await begin(scene, "key");
      for (const number of [1, 2, 5]) await putPart(scene, "key", id, number, "x");
      const first = await list(scene, id, "&max-parts=2");
      assert.deepEqual(first.texts("Part/PartNumber"), ["1", "2"]);
      assert.equal(first.get("IsTruncated"), "true");
      assert.equal(first.get("NextPartNumberMarker"), "2");
      const rest = await list(scene, id, "&max-parts=2&part-number-marker=2");
      assert.deepEqual(rest.texts("Part/PartNumber"), ["5"]);
      assert.equal(rest.get("IsTruncated"), "false");
      assert.equal(rest.get("PartNumberMarker"), "2");
    },
  ],
  [
    "InvalidArgument for numbers that are none",
    async (scene) => {
      const id = await begin(scene, "key");
      for (const query of ["max-parts=x", "max-parts=-1", "part-number-marker=x"]) {
        const answer = await scene.ask("GET", `/key?uploadId=${id}&${query}`);
        assertError(answer, 400, "InvalidArgument");
      }
    },
  ],
  [
    "tells the checksum of each part and the upload's algorithm",
    async (scene) => {
      const id = await begin(scene, "key", { "x-amz-checksum-algorithm": "SHA1" });
      const sum = digest("sha1", "x");
      await putPart(scene, "key", id, 1, "x", { "x-amz-checksum-sha1": sum });
      const found = await list(scene, id);
      assert.equal(found.get("ChecksumAlgorithm"), "SHA1");
      assert.equal(found.get("ChecksumType"), "COMPOSITE");
      assert.equal(found.get("Part/ChecksumSHA1"), sum);
    },
  ],
  [
    "NoSuchUpload for an upload that is not there",
    async ({ ask }) => {
      assertError(await ask("GET", "/key?uploadId=made-up"), 404, "NoSuchUpload");
    },
  ],
  [
    "AccessDenied without a signature",
    async (scene) => {
      const id = await begin(scene, "key");
      const answer = await scene.ask("GET", `/key?uploadId=${id}`, { as: "nobody" });
      assertError(answer, 403, "AccessDenied");
    },
  ],
);
