// CopyObject: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html
import assert from "node:assert/strict";
import {
  assertError,
  casesOf,
  digest,
  md5,
  readResult,
  type CaseRow,
  type Scene,
} from "../case.ts";

const HOUR_MS = 3_600_000;

function copy(scene: Scene, source: string, target: string, headers: Record<string, string> = {}) {
  const from = `/${scene.bucket}/${source}`;
  return scene.ask("PUT", `/${target}`, { headers: { "x-amz-copy-source": from, ...headers } });
}

/** Conditions on the source: header, value by ETag, true if the copy succeeds. */
const CONDITIONS: readonly [name: string, toValue: (etag: string) => string, isMade: boolean][] = [
  ["if-match", (etag) => etag, true],
  ["if-match", () => '"other"', false],
  ["if-none-match", () => '"other"', true],
  ["if-none-match", (etag) => etag, false],
  ["if-modified-since", () => new Date(Date.now() - HOUR_MS).toUTCString(), true],
  ["if-modified-since", () => new Date(Date.now() + HOUR_MS).toUTCString(), false],
  ["if-unmodified-since", () => new Date(Date.now() + HOUR_MS).toUTCString(), true],
  ["if-unmodified-since", () => new Date(Date.now() - HOUR_MS).toUTCString(), false],
];

export const cases = casesOf(
  "CopyObject",
  [
    "copies bytes, headers, metadata and tags, and answers ETag and time",
    async (scene) => {
      await scene.put("a", "hello", {
        "content-type": "text/plain",
        "cache-control": "no-store",
        "x-amz-meta-k": "v",
        "x-amz-tagging": "t=1",
      });
      const result = readResult(await copy(scene, "a", "b"), "CopyObjectResult");
      assert.equal(result.get("ETag"), `"${md5("hello")}"`);
      assert.match(result.get("LastModified")!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      const { headers, text } = await scene.ask("GET", "/b");
      assert.equal(text, "hello");
      assert.equal(headers["content-type"], "text/plain");
      assert.equal(headers["cache-control"], "no-store");
      assert.equal(headers["x-amz-meta-k"], "v");
      assert.equal(headers["x-amz-tagging-count"], "1");
    },
  ],
  [
    "copies an empty object and a large one",
    async (scene) => {
      const large = Buffer.alloc(1_500_000, "large");
      await scene.put("empty");
      await scene.put("large", large);
      assert.equal((await copy(scene, "empty", "e")).status, 200);
      assert.equal((await copy(scene, "large", "l")).status, 200);
      assert.equal((await scene.ask("GET", "/e")).body.length, 0);
      assert.ok((await scene.ask("GET", "/l")).body.equals(large));
    },
  ],
  [
    "copies from another bucket",
    async (scene) => {
      const other = await scene.createBucket();
      await scene.put("a", "hello");
      const answer = await scene.client.send("PUT", `/${other}/b`, {
        headers: { "x-amz-copy-source": `${scene.bucket}/a` },
      });
      assert.equal(answer.status, 200);
      assert.equal((await scene.client.send("GET", `/${other}/b`)).text, "hello");
    },
  ],
  [
    "the copy outlives its source",
    async (scene) => {
      await scene.put("a", Buffer.alloc(100_000, "x"));
      await copy(scene, "a", "b");
      await scene.must("DELETE", "/a");
      assert.equal((await scene.ask("GET", "/b")).body.length, 100_000);
    },
  ],
  [
    "takes a source with or without the slash at its start",
    async (scene) => {
      await scene.put("a", "hello");
      for (const source of [`/${scene.bucket}/a`, `${scene.bucket}/a`]) {
        const headers = { "x-amz-copy-source": source };
        assert.equal((await scene.ask("PUT", "/b", { headers })).status, 200);
      }
    },
  ],
  [
    "takes sources that are encoded",
    async (scene) => {
      const keys = ["a b", "a+b", "ä/ö", "a?versionId=b", "50%"];
      await scene.putAll(...keys);
      for (const key of keys) {
        const answer = await copy(scene, encodeURIComponent(key), "copy");
        assert.equal(answer.status, 200, answer.text);
        assert.equal((await scene.ask("GET", "/copy")).text, key);
      }
    },
  ],
  [
    "takes a source that is encoded as a whole, its slashes included",
    async ({ ask, bucket, putAll }) => {
      await putAll("a/b c");
      for (const source of [`${bucket}/a/b c`, `/${bucket}/a/b c`]) {
        const headers = { "x-amz-copy-source": encodeURIComponent(source) };
        assert.equal((await ask("PUT", "/copy", { headers })).status, 200);
        assert.equal((await ask("GET", "/copy")).text, "a/b c");
      }
    },
  ],
  [
    "takes a source whose letters are bytes of UTF-8 and not encoded",
    async (scene) => {
      await scene.putAll("grün");
      const source = Buffer.from("grün").toString("latin1");
      assert.equal((await copy(scene, source, "copy")).status, 200);
      assert.equal((await scene.ask("GET", "/copy")).text, "grün");
    },
  ],
  [
    "NoSuchKey for a source that is not there",
    async (scene) => assertError(await copy(scene, "missing", "b"), 404, "NoSuchKey"),
  ],
  [
    "NoSuchBucket for the source's bucket that is not there",
    async ({ ask, bucket }) => {
      const headers = { "x-amz-copy-source": `${bucket}-not/a` };
      assertError(await ask("PUT", "/b", { headers }), 404, "NoSuchBucket");
    },
  ],
  [
    "NoSuchBucket for the target's bucket that is not there",
    async ({ client, bucket, put }) => {
      await put("a");
      const headers = { "x-amz-copy-source": `${bucket}/a` };
      const answer = await client.send("PUT", `/${bucket}-not/b`, { headers });
      assertError(answer, 404, "NoSuchBucket");
    },
  ],
  [
    "InvalidArgument for a source that names no key",
    async ({ ask, bucket }) => {
      for (const source of ["", "/", bucket, `/${bucket}/`]) {
        const headers = { "x-amz-copy-source": source };
        assertError(await ask("PUT", "/b", { headers }), 400, "InvalidArgument");
      }
    },
  ],
  [
    "InvalidRequest onto itself without any change",
    async (scene) => {
      await scene.put("a", "x");
      assertError(await copy(scene, "a", "a"), 400, "InvalidRequest");
      assert.equal((await scene.ask("GET", "/a")).text, "x");
    },
  ],
  [
    "onto itself replaces metadata",
    async (scene) => {
      await scene.put("a", "x", { "x-amz-meta-old": "1" });
      const headers = { "x-amz-metadata-directive": "REPLACE", "x-amz-meta-new": "2" };
      assert.equal((await copy(scene, "a", "a", headers)).status, 200);
      const got = await scene.ask("GET", "/a");
      assert.equal(got.text, "x");
      assert.equal(got.headers["x-amz-meta-old"], undefined);
      assert.equal(got.headers["x-amz-meta-new"], "2");
    },
  ],
  [
    "onto itself changes the storage class",
    async (scene) => {
      await scene.put("a", "x", { "x-amz-meta-k": "v" });
      const headers = { "x-amz-storage-class": "STANDARD_IA" };
      assert.equal((await copy(scene, "a", "a", headers)).status, 200);
      const got = await scene.ask("HEAD", "/a");
      assert.equal(got.headers["x-amz-storage-class"], "STANDARD_IA");
      assert.equal(got.headers["x-amz-meta-k"], "v");
    },
  ],
  [
    "REPLACE takes headers and metadata of the request and none of the source",
    async (scene) => {
      await scene.put("a", "x", { "content-type": "text/plain", "x-amz-meta-old": "1" });
      const headers = {
        "x-amz-metadata-directive": "REPLACE",
        "content-type": "text/html",
        "x-amz-meta-new": "2",
      };
      await copy(scene, "a", "b", headers);
      const got = await scene.ask("HEAD", "/b");
      assert.equal(got.headers["content-type"], "text/html");
      assert.equal(got.headers["x-amz-meta-old"], undefined);
      assert.equal(got.headers["x-amz-meta-new"], "2");
    },
  ],
  [
    "COPY ignores metadata of the request",
    async (scene) => {
      await scene.put("a", "x", { "x-amz-meta-old": "1" });
      const headers = { "x-amz-metadata-directive": "COPY", "x-amz-meta-new": "2" };
      await copy(scene, "a", "b", headers);
      const got = await scene.ask("HEAD", "/b");
      assert.equal(got.headers["x-amz-meta-old"], "1");
      assert.equal(got.headers["x-amz-meta-new"], undefined);
    },
  ],
  [
    "InvalidArgument for a directive that is not known",
    async (scene) => {
      await scene.put("a", "x");
      for (const name of ["x-amz-metadata-directive", "x-amz-tagging-directive"]) {
        assertError(await copy(scene, "a", "b", { [name]: "KEEP" }), 400, "InvalidArgument");
      }
    },
  ],
  [
    "REPLACE of tags takes those of the request",
    async (scene) => {
      await scene.put("a", "x", { "x-amz-tagging": "old=1" });
      const headers = { "x-amz-tagging-directive": "REPLACE", "x-amz-tagging": "new=2" };
      await copy(scene, "a", "b", headers);
      const tags = (await scene.ask("GET", "/b?tagging")).document;
      assert.deepEqual(tags.texts("TagSet/Tag/Key"), ["new"]);
    },
  ],
  [
    "REPLACE of tags without tags leaves none",
    async (scene) => {
      await scene.put("a", "x", { "x-amz-tagging": "old=1" });
      await copy(scene, "a", "b", { "x-amz-tagging-directive": "REPLACE" });
      assert.equal((await scene.ask("HEAD", "/b")).headers["x-amz-tagging-count"], undefined);
    },
  ],
  ...CONDITIONS.map(([name, toValue, isMade]): CaseRow => [
    `x-amz-copy-source-${name} that ${isMade ? "holds lets the copy be made" : "fails is PreconditionFailed"}`,
    async (scene) => {
      const etag = (await scene.put("a", "x")).headers["etag"]!;
      const headers = { [`x-amz-copy-source-${name}`]: toValue(etag) };
      const answer = await copy(scene, "a", "b", headers);
      if (isMade) assert.equal(answer.status, 200, answer.text);
      else assertError(answer, 412, "PreconditionFailed");
      assert.equal((await scene.ask("HEAD", "/b")).status, isMade ? 200 : 404);
    },
  ]),
  [
    "If-None-Match: * copies only where nothing is",
    async (scene) => {
      await scene.put("a", "x");
      const headers = { "if-none-match": "*" };
      assert.equal((await copy(scene, "a", "b", headers)).status, 200);
      assertError(await copy(scene, "a", "b", headers), 412, "PreconditionFailed");
    },
  ],
  [
    "copies a version that is named",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const first = (await scene.put("a", "1")).headers["x-amz-version-id"]!;
      await scene.put("a", "2");
      const answer = await copy(scene, `a?versionId=${first}`, "b");
      assert.equal(answer.status, 200);
      assert.equal(answer.headers["x-amz-copy-source-version-id"], first);
      assert.ok(answer.headers["x-amz-version-id"] !== undefined);
      assert.equal((await scene.ask("GET", "/b")).text, "1");
    },
  ],
  [
    "brings an earlier version back onto its own key",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const first = (await scene.put("a", "1")).headers["x-amz-version-id"]!;
      await scene.put("a", "2");
      assert.equal((await copy(scene, `a?versionId=${first}`, "a")).status, 200);
      assert.equal((await scene.ask("GET", "/a")).text, "1");
    },
  ],
  [
    "NoSuchVersion for a version that is not there",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await scene.put("a", "1");
      const other = (await scene.put("b", "1")).headers["x-amz-version-id"]!;
      assertError(await copy(scene, `a?versionId=${other}`, "c"), 404, "NoSuchVersion");
    },
  ],
  [
    "NoSuchKey for a source whose latest version is a delete marker",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await scene.put("a", "1");
      await scene.must("DELETE", "/a");
      assertError(await copy(scene, "a", "b"), 404, "NoSuchKey");
    },
  ],
  [
    "InvalidRequest for a delete marker that is named as source",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await scene.put("a", "1");
      const marker = (await scene.must("DELETE", "/a")).headers["x-amz-version-id"]!;
      assertError(await copy(scene, `a?versionId=${marker}`, "b"), 400, "InvalidRequest");
    },
  ],
  [
    "does not copy the ACL",
    async (scene) => {
      await scene.put("a", "x", { "x-amz-acl": "public-read" });
      await copy(scene, "a", "b");
      assert.equal((await scene.ask("GET", "/a", { as: "nobody" })).status, 200);
      assertError(await scene.ask("GET", "/b", { as: "nobody" }), 403, "AccessDenied");
    },
  ],
  [
    "gives the copy the canned ACL of the request",
    async (scene) => {
      await scene.put("a", "x");
      await copy(scene, "a", "b", { "x-amz-acl": "public-read" });
      assert.equal((await scene.ask("GET", "/b", { as: "nobody" })).text, "x");
    },
  ],
  [
    "computes the checksum that is asked for",
    async (scene) => {
      await scene.put("a", "hello");
      const answer = await copy(scene, "a", "b", { "x-amz-checksum-algorithm": "SHA256" });
      const result = readResult(answer, "CopyObjectResult");
      assert.equal(result.get("ChecksumSHA256"), digest("sha256", "hello"));
    },
  ],
  [
    "keeps the checksum of the source",
    async (scene) => {
      await scene.put("a", "123456789", { "x-amz-checksum-crc32": "y/Q5Jg==" });
      const result = readResult(await copy(scene, "a", "b"), "CopyObjectResult");
      assert.equal(result.get("ChecksumCRC32"), "y/Q5Jg==");
    },
  ],
  [
    "AccessDenied for who may not read the source",
    async (scene) => {
      await scene.put("secret/a", "x");
      const Resource = `arn:aws:s3:::${scene.bucket}/open/*`;
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:*", Resource });
      const headers = { "x-amz-copy-source": `${scene.bucket}/secret/a` };
      assertError(await scene.ask("PUT", "/open/b", { as, headers }), 403, "AccessDenied");
      assert.equal((await scene.ask("HEAD", "/open/b")).status, 404);
    },
  ],
  [
    "AccessDenied for who may not write the target",
    async (scene) => {
      await scene.put("open/a", "x");
      const Resource = `arn:aws:s3:::${scene.bucket}/open/*`;
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:GetObject", Resource });
      const headers = { "x-amz-copy-source": `${scene.bucket}/open/a` };
      assertError(await scene.ask("PUT", "/open/b", { as, headers }), 403, "AccessDenied");
    },
  ],
  [
    "AccessDenied for who may not read the source's tags, unless they stay behind",
    async (scene) => {
      await scene.put("a", "x", { "x-amz-tagging": "t=1" });
      await scene.put("untagged", "x");
      const Resource = `arn:aws:s3:::${scene.bucket}/*`;
      const Action = ["s3:GetObject", "s3:PutObject"];
      const as = await scene.createUser({ Effect: "Allow", Action, Resource });
      const send = (source: string, more: Record<string, string> = {}) => {
        const headers = { "x-amz-copy-source": `${scene.bucket}/${source}`, ...more };
        return scene.ask("PUT", "/b", { as, headers });
      };
      assertError(await send("a"), 403, "AccessDenied");
      assert.equal((await send("a", { "x-amz-tagging-directive": "REPLACE" })).status, 200);
      assert.equal((await scene.ask("HEAD", "/b")).headers["x-amz-tagging-count"], undefined);
      assert.equal((await send("untagged")).status, 200);
    },
  ],
  [
    "takes x-store-copy-source",
    async ({ ask, bucket, put }) => {
      await put("a", "x");
      const headers = { "x-store-copy-source": `${bucket}/a` };
      assert.equal((await ask("PUT", "/b", { headers })).document.name, "CopyObjectResult");
      assert.equal((await ask("GET", "/b")).text, "x");
    },
  ],
  [
    "onto itself computes a checksum that the object did not have",
    async ({ ask, bucket, put }) => {
      await put("key", "hello", { "content-type": "text/plain", "x-amz-meta-a": "1" });
      const headers = {
        "x-amz-copy-source": `/${bucket}/key`,
        "x-amz-checksum-algorithm": "SHA256",
      };
      readResult(await ask("PUT", "/key", { headers }), "CopyObjectResult");
      const mode = { "x-amz-checksum-mode": "ENABLED" };
      const got = await ask("GET", "/key", { headers: mode });
      assert.equal(got.text, "hello");
      assert.equal(got.headers["content-type"], "text/plain");
      assert.equal(got.headers["x-amz-meta-a"], "1");
      assert.equal(got.headers["x-amz-checksum-sha256"], digest("sha256", "hello"));
    },
  ],
  [
    "InvalidRequest onto itself with nothing but another ACL",
    async ({ ask, bucket, put }) => {
      await put("key", "hello");
      const headers = { "x-amz-copy-source": `/${bucket}/key`, "x-amz-acl": "public-read" };
      assertError(await ask("PUT", "/key", { headers }), 400, "InvalidRequest");
    },
  ],
  [
    "InvalidArgument for what cannot be a version's id",
    async ({ ask, bucket, put }) => {
      await put("key", "hello");
      const headers = { "x-amz-copy-source": `/${bucket}/key?versionId=no-id` };
      assertError(await ask("PUT", "/copy", { headers }), 400, "InvalidArgument");
    },
  ],
  [
    "tells when a lifecycle rule will remove the copy",
    async ({ ask, bucket, must, put }) => {
      await must("PUT", "?lifecycle", {
        body: "<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status><Filter><Prefix>old/</Prefix></Filter><Expiration><Days>3</Days></Expiration></Rule></LifecycleConfiguration>",
      });
      await put("key", "hello");
      const headers = { "x-amz-copy-source": `/${bucket}/key` };
      const copied = await ask("PUT", "/old/key", { headers });
      assert.match(copied.headers["x-amz-expiration"] ?? "", /rule-id="r"/);
      const other = await ask("PUT", "/new/key", { headers });
      assert.equal(other.headers["x-amz-expiration"], undefined);
    },
  ],
  [
    "InvalidArgument for a source whose encoding is broken",
    async ({ ask, bucket }) => {
      const headers = { "x-amz-copy-source": `/${bucket}/a%zz` };
      assertError(await ask("PUT", "/copy", { headers }), 400, "InvalidArgument");
    },
  ],
  [
    "does not tell which sources are missing to who may not list their bucket",
    async ({ ask, bucket, createBucket, createUser, put }) => {
      const other = await createBucket();
      await put("there", "x");
      const may = (...resources: string[]) => ({
        Effect: "Allow",
        Action: ["s3:GetObject", "s3:PutObject"],
        Resource: resources.map((name) => `arn:aws:s3:::${name}/*`),
      });
      const list = { Effect: "Allow", Action: "s3:ListBucket", Resource: `arn:aws:s3:::${other}` };
      const user = await createUser(may(bucket, other), list);
      const from = (source: string) =>
        ask("PUT", "/copy", { as: user, headers: { "x-amz-copy-source": source } });
      assertError(await from(`/${bucket}/missing`), 403, "AccessDenied");
      assertError(await from(`/${other}/missing`), 404, "NoSuchKey");
      assert.equal((await from(`/${bucket}/there`)).status, 200);
    },
  ],
  [
    "the source's ACL lets copy whom it lets read",
    async (scene) => {
      const Resource = `arn:aws:s3:::${scene.bucket}/open/*`;
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:PutObject", Resource });
      const from = (source: string) => ({ "x-amz-copy-source": `${scene.bucket}/${source}` });
      for (const acl of ["public-read", "authenticated-read"]) {
        await scene.put(acl, acl, { "x-amz-acl": acl });
        const answer = await scene.ask("PUT", `/open/${acl}`, { as, headers: from(acl) });
        assert.equal(answer.status, 200, answer.text);
        assert.equal((await scene.ask("GET", `/open/${acl}`)).text, acl);
      }
      await scene.put("private", "x");
      const denied = await scene.ask("PUT", "/open/private", { as, headers: from("private") });
      assertError(denied, 403, "AccessDenied");
      const missing = await scene.ask("PUT", "/open/missing", { as, headers: from("missing") });
      assertError(missing, 403, "AccessDenied");
    },
  ],
);
