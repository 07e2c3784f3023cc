// DeleteObjects: https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
import assert from "node:assert/strict";
import { assertError, casesOf, digest, readResult, type Scene } from "../case.ts";

function toBody(keys: readonly string[], extra = ""): string {
  const items = keys.map((key) => `<Object><Key>${key}</Key></Object>`).join("");
  return `<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${items}${extra}</Delete>`;
}

async function remove({ ask }: Scene, body: string, headers: Record<string, string> = {}) {
  const named = { "content-md5": digest("md5", body), ...headers };
  return readResult(await ask("POST", "?delete", { body, headers: named }), "DeleteResult");
}

export const cases = casesOf(
  "DeleteObjects",
  [
    "removes all keys and names each",
    async (scene) => {
      await scene.putAll("a", "b", "c");
      const result = await remove(scene, toBody(["a", "b"]));
      assert.deepEqual(result.texts("Deleted/Key"), ["a", "b"]);
      assert.deepEqual(result.all("Error"), []);
      assert.deepEqual((await scene.ask("GET")).document.texts("Contents/Key"), ["c"]);
    },
  ],
  [
    "names keys that were not there as deleted",
    async (scene) => {
      const result = await remove(scene, toBody(["never"]));
      assert.deepEqual(result.texts("Deleted/Key"), ["never"]);
    },
  ],
  [
    "is quiet about what it deleted where that is asked",
    async (scene) => {
      await scene.putAll("a");
      const result = await remove(scene, toBody(["a"], "<Quiet>true</Quiet>"));
      assert.equal(result.children.length, 0);
      assert.equal((await scene.ask("HEAD", "/a")).status, 404);
    },
  ],
  [
    "is not quiet about what it did not delete",
    async (scene) => {
      await scene.put("a", "1");
      const item = "<Object><Key>a</Key><ETag>other</ETag></Object>";
      const result = await remove(scene, `<Delete>${item}<Quiet>true</Quiet></Delete>`);
      assert.equal(result.get("Error/Code"), "PreconditionFailed");
      assert.equal((await scene.ask("GET", "/a")).text, "1");
    },
  ],
  [
    "takes a body whose hash is signed, without any other digest",
    async ({ ask, putAll }) => {
      await putAll("a");
      const answer = await ask("POST", "?delete", { body: toBody(["a"]) });
      assert.deepEqual(answer.document.texts("Deleted/Key"), ["a"]);
    },
  ],
  [
    "takes a checksum in place of Content-MD5",
    async ({ ask, putAll }) => {
      await putAll("a");
      const body = toBody(["a"]);
      const headers = { "x-amz-checksum-sha256": digest("sha256", body) };
      const answer = await ask("POST", "?delete", { body, headers, payload: "UNSIGNED-PAYLOAD" });
      assert.deepEqual(answer.document.texts("Deleted/Key"), ["a"]);
    },
  ],
  [
    "BadDigest for a Content-MD5 of another body, and deletes nothing",
    async ({ ask, putAll }) => {
      await putAll("a");
      const headers = { "content-md5": digest("md5", "other") };
      const answer = await ask("POST", "?delete", { body: toBody(["a"]), headers });
      assertError(answer, 400, "BadDigest");
      assert.equal((await ask("HEAD", "/a")).status, 200);
    },
  ],
  [
    "takes a thousand keys and refuses more",
    async (scene) => {
      const keys = Array.from({ length: 1_001 }, (_, index) => `k${index}`);
      const result = await remove(scene, toBody(keys.slice(1)));
      assert.equal(result.all("Deleted").length, 1_000);
      const answer = await scene.ask("POST", "?delete", { body: toBody(keys) });
      assertError(answer, 400, "MalformedXML");
    },
  ],
  [
    "MalformedXML for what is no list of keys",
    async ({ ask }) => {
      const bodies = [
        "hello",
        "<Delete/>",
        "<Delete><Object/></Delete>",
        "<Delete><Object><Key/></Object></Delete>",
        "<Other><Object><Key>a</Key></Object></Other>",
      ];
      for (const body of bodies) {
        assertError(await ask("POST", "?delete", { body }), 400, "MalformedXML");
      }
    },
  ],
  [
    "takes keys with what XML escapes",
    async (scene) => {
      await scene.putAll("<a>&b", "c\nd");
      const result = await remove(scene, toBody(["&lt;a&gt;&amp;b", "c&#10;d"]));
      assert.deepEqual(result.texts("Deleted/Key"), ["<a>&b", "c\nd"]);
      assert.deepEqual((await scene.ask("GET")).document.texts("Contents/Key"), []);
    },
  ],
  [
    "leaves delete markers in a versioned bucket and names them",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await scene.put("a", "x");
      const result = await remove(scene, toBody(["a"]));
      assert.equal(result.get("Deleted/DeleteMarker"), "true");
      assert.equal(result.get("Deleted/VersionId"), undefined);
      const marker = result.get("Deleted/DeleteMarkerVersionId");
      const versions = await scene.ask("GET", "?versions");
      assert.equal(versions.document.get("DeleteMarker/VersionId"), marker);
    },
  ],
  [
    "removes versions by their ids",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const id = (await scene.put("a", "1")).headers["x-amz-version-id"];
      await scene.put("a", "2");
      const body = `<Delete><Object><Key>a</Key><VersionId>${id}</VersionId></Object></Delete>`;
      const result = await remove(scene, body);
      assert.equal(result.get("Deleted/VersionId"), id);
      assert.equal(result.get("Deleted/DeleteMarker"), undefined);
      const versions = await scene.ask("GET", "?versions");
      assert.equal(versions.document.texts("Version/VersionId").length, 1);
    },
  ],
  [
    "removing a delete marker says so and brings the object back",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await scene.put("a", "1");
      const id = (await scene.must("DELETE", "/a")).headers["x-amz-version-id"];
      const body = `<Delete><Object><Key>a</Key><VersionId>${id}</VersionId></Object></Delete>`;
      const result = await remove(scene, body);
      assert.equal(result.get("Deleted/DeleteMarker"), "true");
      assert.equal(result.get("Deleted/DeleteMarkerVersionId"), id);
      assert.equal((await scene.ask("GET", "/a")).text, "1");
    },
  ],
  [
    "deletes an object only where its ETag is the given one",
    async (scene) => {
      const etag = (await scene.put("a", "1")).headers["etag"]!;
      const toOne = (tag: string) =>
        `<Delete><Object><Key>a</Key><ETag>${tag}</ETag></Object></Delete>`;
      const wrong = await remove(scene, toOne("other"));
      assert.equal(wrong.get("Error/Code"), "PreconditionFailed");
      assert.equal(wrong.get("Error/Key"), "a");
      const right = await remove(scene, toOne(etag.replaceAll('"', "&quot;")));
      assert.deepEqual(right.texts("Deleted/Key"), ["a"]);
    },
  ],
  [
    "names errors of single keys while it deletes the others",
    async ({ ask, bucket, createUser, putAll }) => {
      await putAll("mine/a", "other/b");
      const as = await createUser(
        { Effect: "Allow", Action: "s3:DeleteObject", Resource: `arn:aws:s3:::${bucket}/mine/*` },
        { Effect: "Allow", Action: "s3:DeleteObject", Resource: `arn:aws:s3:::${bucket}` },
      );
      const answer = await ask("POST", "?delete", { body: toBody(["mine/a", "other/b"]), as });
      const result = readResult(answer, "DeleteResult");
      assert.deepEqual(result.texts("Deleted/Key"), ["mine/a"]);
      assert.equal(result.get("Error/Key"), "other/b");
      assert.equal(result.get("Error/Code"), "AccessDenied");
    },
  ],
  [
    "is allowed by a policy for the objects alone",
    async ({ ask, bucket, createUser, putAll }) => {
      await putAll("a");
      const Resource = `arn:aws:s3:::${bucket}/*`;
      const as = await createUser({ Effect: "Allow", Action: "s3:DeleteObject", Resource });
      const answer = await ask("POST", "?delete", { body: toBody(["a"]), as });
      const result = readResult(answer, "DeleteResult");
      assert.deepEqual(result.texts("Deleted/Key"), ["a"]);
    },
  ],
  [
    "deletes nothing without a signature",
    async ({ ask, putAll }) => {
      await putAll("a");
      const answer = await ask("POST", "?delete", { body: toBody(["a"]), as: "nobody" });
      assert.ok(answer.status === 403 || answer.document.get("Error/Code") === "AccessDenied");
      assert.equal((await ask("HEAD", "/a")).status, 200);
    },
  ],
  [
    "lets who may bypass governance of some keys do so for those alone",
    async ({ client, createBucket, createUser }) => {
      const name = await createBucket({ "x-amz-bucket-object-lock-enabled": "true" });
      const headers = {
        "x-amz-object-lock-mode": "GOVERNANCE",
        "x-amz-object-lock-retain-until-date": new Date(Date.now() + 3_600_000).toISOString(),
      };
      const items = [];
      for (const key of ["mine/a", "other/b"]) {
        const put = await client.send("PUT", `/${name}/${key}`, { headers });
        const id = put.headers["x-amz-version-id"];
        items.push(`<Object><Key>${key}</Key><VersionId>${id}</VersionId></Object>`);
      }
      const bypass = "s3:BypassGovernanceRetention";
      const as = await createUser(
        { Effect: "Allow", Action: "s3:DeleteObjectVersion", Resource: `arn:aws:s3:::${name}/*` },
        { Effect: "Allow", Action: bypass, Resource: `arn:aws:s3:::${name}/mine/*` },
      );
      const { document } = await client.send("POST", `/${name}?delete`, {
        as,
        body: `<Delete>${items.join("")}</Delete>`,
        headers: { "x-amz-bypass-governance-retention": "true" },
      });
      assert.deepEqual(document.texts("Deleted/Key"), ["mine/a"]);
      assert.deepEqual(document.texts("Error/Key"), ["other/b"]);
    },
  ],
  [
    "keeps what governance protects and names it, unless it may be bypassed",
    async ({ client, createBucket }) => {
      const name = await createBucket({ "x-amz-bucket-object-lock-enabled": "true" });
      const put = await client.send("PUT", `/${name}/a`, {
        headers: {
          "x-amz-object-lock-mode": "GOVERNANCE",
          "x-amz-object-lock-retain-until-date": new Date(Date.now() + 3_600_000).toISOString(),
        },
      });
      const id = put.headers["x-amz-version-id"];
      const body = `<Delete><Object><Key>a</Key><VersionId>${id}</VersionId></Object></Delete>`;
      const kept = await client.send("POST", `/${name}?delete`, { body });
      assert.equal(kept.document.get("Error/Code"), "AccessDenied");
      assert.equal(kept.document.get("Error/VersionId"), id);
      const headers = { "x-amz-bypass-governance-retention": "true" };
      const gone = await client.send("POST", `/${name}?delete`, { body, headers });
      assert.equal(gone.document.get("Deleted/VersionId"), id);
    },
  ],
  [
    "NoSuchVersion for what cannot be a version's id, while the others are deleted",
    async (scene) => {
      await scene.putAll("a", "b");
      const body =
        "<Delete><Object><Key>a</Key><VersionId>no-id</VersionId></Object><Object><Key>b</Key></Object></Delete>";
      const result = readResult(await scene.ask("POST", "?delete", { body }), "DeleteResult");
      assert.equal(result.get("Error/Code"), "NoSuchVersion");
      assert.equal(result.get("Error/VersionId"), "no-id");
      assert.equal(result.get("Deleted/Key"), "b");
      assert.equal((await scene.ask("GET", "/a")).text, "a");
    },
  ],
);
