// Versions of objects: https://docs.aws.amazon.com/AmazonS3/latest/userguide/Versioning.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, type Scene } from "../case.ts";

async function putVersion(scene: Scene, body: string, key = "key"): Promise<string> {
  return (await scene.put(key, body)).headers["x-amz-version-id"]!;
}

async function readVersions({ ask }: Scene): Promise<string[]> {
  const { document } = await ask("GET", "?versions");
  return document.children
    .filter(({ name }) => name === "Version" || name === "DeleteMarker")
    .map((item) => `${item.name} ${item.get("VersionId")}`);
}

export const cases = casesOf(
  "Versions of objects",
  [
    "each put makes a version, and the last is the object",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const first = await putVersion(scene, "1");
      const second = await putVersion(scene, "2");
      assert.notEqual(first, second);
      const latest = await scene.ask("GET", "/key");
      assert.equal(latest.text, "2");
      assert.equal(latest.headers["x-amz-version-id"], second);
      const earlier = await scene.ask("GET", `/key?versionId=${first}`);
      assert.equal(earlier.text, "1");
      assert.equal(earlier.headers["x-amz-version-id"], first);
    },
  ],
  [
    "HEAD tells of the version that is asked for",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const first = await putVersion(scene, "1");
      await putVersion(scene, "22");
      const head = await scene.ask("HEAD", `/key?versionId=${first}`);
      assertEmpty(head, 200);
      assert.equal(head.headers["content-length"], "1");
      assert.equal(head.headers["x-amz-version-id"], first);
    },
  ],
  [
    "DELETE leaves a marker and names it",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const version = await putVersion(scene, "1");
      const answer = await scene.ask("DELETE", "/key");
      assertEmpty(answer, 204);
      assert.equal(answer.headers["x-amz-delete-marker"], "true");
      const marker = answer.headers["x-amz-version-id"];
      assert.deepEqual(await readVersions(scene), [`DeleteMarker ${marker}`, `Version ${version}`]);
    },
  ],
  [
    "behind a marker the object is NoSuchKey, which names the marker",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await putVersion(scene, "1");
      const marker = (await scene.must("DELETE", "/key")).headers["x-amz-version-id"];
      const answer = await scene.ask("GET", "/key");
      assertError(answer, 404, "NoSuchKey");
      assert.equal(answer.headers["x-amz-delete-marker"], "true");
      assert.equal(answer.headers["x-amz-version-id"], marker);
      const head = await scene.ask("HEAD", "/key");
      assertEmpty(head, 404);
      assert.equal(head.headers["x-amz-delete-marker"], "true");
    },
  ],
  [
    "a marker cannot be read: MethodNotAllowed, DELETE alone is allowed",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await putVersion(scene, "1");
      const marker = (await scene.must("DELETE", "/key")).headers["x-amz-version-id"];
      const answer = await scene.ask("GET", `/key?versionId=${marker}`);
      assertError(answer, 405, "MethodNotAllowed");
      assert.equal(answer.headers["allow"], "DELETE");
      assert.equal(answer.headers["x-amz-delete-marker"], "true");
      assert.ok(answer.headers["last-modified"] !== undefined);
      assertEmpty(await scene.ask("HEAD", `/key?versionId=${marker}`), 405);
    },
  ],
  [
    "removing the marker brings the object back",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await putVersion(scene, "1");
      const marker = (await scene.must("DELETE", "/key")).headers["x-amz-version-id"];
      const answer = await scene.ask("DELETE", `/key?versionId=${marker}`);
      assertEmpty(answer, 204);
      assert.equal(answer.headers["x-amz-delete-marker"], "true");
      assert.equal(answer.headers["x-amz-version-id"], marker);
      assert.equal((await scene.ask("GET", "/key")).text, "1");
    },
  ],
  [
    "removing the latest version makes the one before the object",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await putVersion(scene, "1");
      const second = await putVersion(scene, "2");
      const answer = await scene.ask("DELETE", `/key?versionId=${second}`);
      assertEmpty(answer, 204);
      assert.equal(answer.headers["x-amz-version-id"], second);
      assert.equal(answer.headers["x-amz-delete-marker"], undefined);
      assert.equal((await scene.ask("GET", "/key")).text, "1");
    },
  ],
  [
    "removing an earlier version leaves the object alone",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const first = await putVersion(scene, "1");
      await putVersion(scene, "2");
      await scene.must("DELETE", `/key?versionId=${first}`);
      assert.equal((await scene.ask("GET", "/key")).text, "2");
      assertError(await scene.ask("GET", `/key?versionId=${first}`), 404, "NoSuchVersion");
    },
  ],
  [
    "removing a version that is not there is 204",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const version = await putVersion(scene, "1");
      for (let round = 0; round < 2; round += 1) {
        assertEmpty(await scene.ask("DELETE", `/key?versionId=${version}`), 204);
      }
    },
  ],
  [
    "each DELETE leaves a marker, also where nothing is",
    async (scene) => {
      await scene.setVersioning("Enabled");
      for (let round = 0; round < 2; round += 1)
        assertEmpty(await scene.ask("DELETE", "/key"), 204);
      const rows = await readVersions(scene);
      assert.equal(rows.length, 2);
      assert.ok(rows.every((row) => row.startsWith("DeleteMarker ")));
    },
  ],
  [
    "NoSuchVersion for the version of another key",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await putVersion(scene, "1", "a");
      const other = await putVersion(scene, "2", "b");
      const answer = await scene.ask("GET", `/a?versionId=${other}`);
      assertError(answer, 404, "NoSuchVersion");
      assert.equal(answer.document.get("Key"), "a");
      assert.equal(answer.document.get("VersionId"), other);
    },
  ],
  [
    "InvalidArgument for what cannot be a version's id",
    async ({ ask, put }) => {
      await put("key", "x");
      assertError(await ask("GET", "/key?versionId=made-up"), 400, "InvalidArgument");
    },
  ],
  [
    "what was put before versioning is the null version",
    async (scene) => {
      await scene.put("key", "before");
      await scene.setVersioning("Enabled");
      assert.equal((await scene.ask("GET", "/key")).headers["x-amz-version-id"], "null");
      await putVersion(scene, "after");
      assert.equal((await scene.ask("GET", "/key?versionId=null")).text, "before");
    },
  ],
  [
    "the null version can be removed for itself",
    async (scene) => {
      await scene.put("key", "before");
      await scene.setVersioning("Enabled");
      await putVersion(scene, "after");
      const answer = await scene.ask("DELETE", "/key?versionId=null");
      assertEmpty(answer, 204);
      assert.equal(answer.headers["x-amz-version-id"], "null");
      assert.equal((await scene.ask("GET", "/key")).text, "after");
      assertError(await scene.ask("GET", "/key?versionId=null"), 404, "NoSuchVersion");
    },
  ],
  [
    "a bucket that was never versioned names no versions, and takes null for the object's",
    async (scene) => {
      const put = await scene.put("key", "x");
      assert.equal(put.headers["x-amz-version-id"], undefined);
      assert.equal((await scene.ask("GET", "/key?versionId=null")).text, "x");
    },
  ],
  [
    "while suspended, a put replaces the null version alone",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const version = await putVersion(scene, "kept");
      await scene.setVersioning("Suspended");
      assert.equal(await putVersion(scene, "null 1"), "null");
      assert.equal(await putVersion(scene, "null 2"), "null");
      assert.equal((await scene.ask("GET", "/key")).text, "null 2");
      assert.deepEqual(await readVersions(scene), ["Version null", `Version ${version}`]);
      assert.equal((await scene.ask("GET", `/key?versionId=${version}`)).text, "kept");
    },
  ],
  [
    "while suspended, a delete replaces the null version with a null marker",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const version = await putVersion(scene, "kept");
      await scene.setVersioning("Suspended");
      await putVersion(scene, "null");
      const answer = await scene.ask("DELETE", "/key");
      assert.equal(answer.headers["x-amz-delete-marker"], "true");
      assert.equal(answer.headers["x-amz-version-id"], "null");
      assert.deepEqual(await readVersions(scene), ["DeleteMarker null", `Version ${version}`]);
      assertError(await scene.ask("GET", "/key"), 404, "NoSuchKey");
    },
  ],
  [
    "switched on again, versions go on above the null one",
    async (scene) => {
      await scene.setVersioning("Suspended");
      await putVersion(scene, "null");
      await scene.setVersioning("Enabled");
      const version = await putVersion(scene, "new");
      assert.deepEqual(await readVersions(scene), [`Version ${version}`, "Version null"]);
      assert.equal((await scene.ask("GET", "/key?versionId=null")).text, "null");
    },
  ],
  [
    "each version has metadata, tags and an ACL of its own",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const headers = {
        "x-amz-meta-n": "1",
        "x-amz-tagging": "n=1",
        "x-amz-acl": "public-read",
      };
      const first = (await scene.put("key", "1", headers)).headers["x-amz-version-id"];
      await scene.put("key", "2", { "x-amz-meta-n": "2" });
      const head = await scene.ask("HEAD", `/key?versionId=${first}`);
      assert.equal(head.headers["x-amz-meta-n"], "1");
      assert.equal(head.headers["x-amz-tagging-count"], "1");
      const acl = await scene.ask("GET", `/key?acl&versionId=${first}`);
      assert.equal(acl.document.texts("AccessControlList/Grant/Permission").length, 2);
      const latest = await scene.ask("GET", "/key?tagging");
      assert.deepEqual(latest.document.texts("TagSet/Tag/Key"), []);
    },
  ],
  [
    "changes of tags and ACL make no version",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const version = await putVersion(scene, "1");
      const body = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
      const tagged = await scene.must("PUT", "/key?tagging", { body });
      assert.equal(tagged.headers["x-amz-version-id"], version);
      await scene.must("PUT", "/key?acl", { headers: { "x-amz-acl": "public-read" } });
      assert.deepEqual(await readVersions(scene), [`Version ${version}`]);
    },
  ],
  [
    "If-None-Match: * stores above a delete marker",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await putVersion(scene, "1");
      await scene.must("DELETE", "/key");
      await scene.put("key", "2", { "if-none-match": "*" });
      assert.equal((await scene.ask("GET", "/key")).text, "2");
    },
  ],
  [
    "ranges and conditions are those of the version",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const put = await scene.put("key", "0123456789");
      const version = put.headers["x-amz-version-id"];
      await putVersion(scene, "short");
      const headers = { range: "bytes=5-7", "if-match": put.headers["etag"]! };
      const answer = await scene.ask("GET", `/key?versionId=${version}`, { headers });
      assert.equal(`${answer.status} ${answer.text}`, "206 567");
    },
  ],
  [
    "a permission to read objects is none to read versions",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const version = await putVersion(scene, "1");
      const Resource = `arn:aws:s3:::${scene.bucket}/*`;
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:GetObject", Resource });
      assert.equal((await scene.ask("GET", "/key", { as })).text, "1");
      const answer = await scene.ask("GET", `/key?versionId=${version}`, { as });
      assertError(answer, 403, "AccessDenied");
    },
  ],
  [
    "a permission to delete objects is none to remove versions",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const version = await putVersion(scene, "1");
      const Resource = `arn:aws:s3:::${scene.bucket}/*`;
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:DeleteObject", Resource });
      const answer = await scene.ask("DELETE", `/key?versionId=${version}`, { as });
      assertError(answer, 403, "AccessDenied");
      assertEmpty(await scene.ask("DELETE", "/key", { as }), 204);
    },
  ],
  [
    "puts at the same time make a version each",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const ids = await Promise.all(
        Array.from({ length: 8 }, (_, index) => putVersion(scene, String(index))),
      );
      assert.equal(new Set(ids).size, 8);
      assert.equal((await readVersions(scene)).length, 8);
    },
  ],
  [
    "InvalidArgument for an id without a character, which is not the object's, and changes nothing",
    async ({ ask, put }) => {
      await put("key", "x");
      for (const method of ["GET", "DELETE"]) {
        assertError(await ask(method, "/key?versionId="), 400, "InvalidArgument");
      }
      assert.equal((await ask("GET", "/key")).text, "x");
    },
  ],
  [
    "InvalidArgument for a version's id with what makes one, and nothing is made",
    async ({ ask, put }) => {
      await put("key", "x");
      for (const [method, target, headers] of [
        ["PUT", "/key?versionId=null", {}],
        ["PUT", "/key?versionId=null", { "x-amz-copy-source": "/a/b" }],
        ["POST", "/key?uploads&versionId=null", {}],
        ["PUT", "/key?uploadId=a&partNumber=1&versionId=null", {}],
      ] as const) {
        const answer = await ask(method, target, { headers, body: "y" });
        assertError(answer, 400, "InvalidArgument");
      }
      assert.equal((await ask("GET", "/key")).text, "x");
    },
  ],
);
