// ListObjectVersions: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectVersions.html
import assert from "node:assert/strict";
import { assertError, casesOf, md5, readResult, type Scene } from "../case.ts";

async function list({ ask }: Scene, query = "") {
  const target = query === "" ? "?versions" : `?versions&${query}`;
  return readResult(await ask("GET", target), "ListVersionsResult");
}

async function putVersion(scene: Scene, key: string, body: string): Promise<string> {
  return (await scene.put(key, body)).headers["x-amz-version-id"]!;
}

export const cases = casesOf(
  "ListObjectVersions",
  [
    "of a bucket that was never versioned gives each object as its null version",
    async (scene) => {
      await scene.put("key", "hello");
      const found = await list(scene);
      const [item] = found.all("Version");
      assert.equal(found.get("Name"), scene.bucket);
      assert.equal(item!.get("Key"), "key");
      assert.equal(item!.get("VersionId"), "null");
      assert.equal(item!.get("IsLatest"), "true");
      assert.equal(item!.get("ETag"), `"${md5("hello")}"`);
      assert.equal(item!.get("Size"), "5");
      assert.equal(item!.get("StorageClass"), "STANDARD");
      assert.match(item!.get("LastModified")!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.match(item!.get("Owner/ID")!, /^[0-9a-f]{64}$/);
    },
  ],
  [
    "gives the versions of a key from the latest to the first",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const ids = [];
      for (const body of ["1", "22", "333"]) ids.push(await putVersion(scene, "key", body));
      const found = await list(scene);
      assert.deepEqual(found.texts("Version/VersionId"), ids.toReversed());
      assert.deepEqual(found.texts("Version/IsLatest"), ["true", "false", "false"]);
      assert.deepEqual(found.texts("Version/Size"), ["3", "2", "1"]);
    },
  ],
  [
    "gives delete markers without size and ETag",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await scene.put("key", "x");
      const marker = (await scene.must("DELETE", "/key")).headers["x-amz-version-id"];
      const found = await list(scene);
      const [item] = found.all("DeleteMarker");
      assert.equal(item!.get("VersionId"), marker);
      assert.equal(item!.get("IsLatest"), "true");
      assert.equal(item!.get("Size"), undefined);
      assert.equal(item!.get("ETag"), undefined);
      assert.ok(item!.get("Owner/ID") !== undefined);
      assert.deepEqual(found.texts("Version/IsLatest"), ["false"]);
    },
  ],
  [
    "sorts by key first, markers among the versions",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await scene.put("b", "1");
      await scene.put("a", "1");
      await scene.must("DELETE", "/a");
      await scene.put("a", "2");
      const found = await list(scene);
      const rows = found.children
        .filter(({ name }) => name === "Version" || name === "DeleteMarker")
        .map((item) => `${item.name} ${item.get("Key")}`);
      assert.deepEqual(rows, ["Version a", "DeleteMarker a", "Version a", "Version b"]);
    },
  ],
  [
    "pages go on within a key by both markers",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const ids = [];
      for (const body of ["1", "2", "3"]) ids.push(await putVersion(scene, "a", body));
      const last = await putVersion(scene, "b", "4");
      const seen: string[] = [];
      let markers = "";
      for (let page = 0; page < 4; page += 1) {
        const found = await list(scene, `max-keys=1${markers}`);
        seen.push(...found.texts("Version/VersionId"));
        const [key, id] = [found.get("NextKeyMarker"), found.get("NextVersionIdMarker")];
        assert.equal(found.get("IsTruncated"), String(page < 3));
        markers = `&key-marker=${key}&version-id-marker=${id}`;
      }
      assert.deepEqual(seen, [...ids.toReversed(), last]);
    },
  ],
  [
    "a key marker alone begins behind all versions of the key",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await scene.put("a", "1");
      await scene.put("a", "2");
      await scene.put("b", "1");
      assert.deepEqual((await list(scene, "key-marker=a")).texts("Version/Key"), ["b"]);
    },
  ],
  [
    "InvalidArgument for a version marker without a key marker",
    async ({ ask }) => {
      const answer = await ask("GET", "?versions&version-id-marker=null");
      assertError(answer, 400, "InvalidArgument");
    },
  ],
  [
    "prefix and delimiter work as in other listings",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await scene.putAll("a/1", "a/2/3", "b");
      await scene.put("a/1", "again");
      const found = await list(scene, "prefix=a/&delimiter=/");
      assert.deepEqual(found.texts("Version/Key"), ["a/1", "a/1"]);
      assert.deepEqual(found.texts("CommonPrefixes/Prefix"), ["a/2/"]);
      assert.equal(found.get("Delimiter"), "/");
    },
  ],
  [
    "encoding-type=url encodes keys and markers",
    async (scene) => {
      await scene.putAll("a b");
      const found = await list(scene, "encoding-type=url&key-marker=a%00");
      assert.equal(found.get("Version/Key"), "a%20b");
      assert.equal(found.get("KeyMarker"), "a%00");
      assert.equal(found.get("EncodingType"), "url");
    },
  ],
  [
    "max-keys of 0 gives nothing and is not truncated",
    async (scene) => {
      await scene.put("a");
      const found = await list(scene, "max-keys=0");
      assert.deepEqual([found.texts("Version/Key"), found.get("IsTruncated")], [[], "false"]);
    },
  ],
  [
    "echoes its markers",
    async (scene) => {
      const found = await list(scene, "key-marker=a&version-id-marker=null");
      assert.equal(found.get("KeyMarker"), "a");
      assert.equal(found.get("VersionIdMarker"), "null");
      assert.equal(found.get("MaxKeys"), "1000");
    },
  ],
  [
    "a policy that allows listing objects does not allow listing versions",
    async ({ ask, bucket, createUser }) => {
      const Resource = `arn:aws:s3:::${bucket}`;
      const as = await createUser({ Effect: "Allow", Action: "s3:ListBucket", Resource });
      assert.equal((await ask("GET", "", { as })).status, 200);
      assertError(await ask("GET", "?versions", { as }), 403, "AccessDenied");
    },
  ],
  [
    "InvalidArgument for a version marker that is empty or no version's id",
    async ({ ask }) => {
      for (const id of ["", "1"]) {
        const answer = await ask("GET", `?versions&key-marker=a&version-id-marker=${id}`);
        assertError(answer, 400, "InvalidArgument");
        assert.equal(answer.document.get("ArgumentName"), "version-id-marker");
      }
    },
  ],
  [
    "a key marker that is shorter than the delimiter is a key like any other",
    async ({ must, putAll }) => {
      await putAll("a", "a-", "a/b", "b");
      const page = await must("GET", "?versions&key-marker=a&delimiter=/b");
      assert.deepEqual(page.document.texts("Version/Key"), ["a-", "b"]);
      assert.deepEqual(page.document.texts("CommonPrefixes/Prefix"), ["a/b"]);
    },
  ],
);
