// ListObjects: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjects.html
import assert from "node:assert/strict";
import { assertError, casesOf, readResult, type Scene } from "../case.ts";

async function list({ ask }: Scene, query = "") {
  const found = readResult(await ask("GET", query === "" ? "" : `?${query}`), "ListBucketResult");
  return {
    found,
    keys: found.texts("Contents/Key"),
    prefixes: found.texts("CommonPrefixes/Prefix"),
    isTruncated: found.get("IsTruncated") === "true",
    next: found.get("NextMarker"),
  };
}

export const cases = casesOf(
  "ListObjects",
  [
    "of an empty bucket has what it was asked for and no contents",
    async (scene) => {
      const { found, keys } = await list(scene);
      assert.deepEqual(keys, []);
      assert.equal(found.get("Name"), scene.bucket);
      assert.equal(found.get("Prefix"), "");
      assert.equal(found.get("Marker"), "");
      assert.equal(found.get("MaxKeys"), "1000");
      assert.equal(found.get("IsTruncated"), "false");
      assert.equal(found.get("KeyCount"), undefined);
    },
  ],
  [
    "tells the owner of each object",
    async (scene) => {
      await scene.put("key");
      const { found } = await list(scene);
      assert.match(found.get("Contents/Owner/ID")!, /^[0-9a-f]{64}$/);
      assert.ok(found.get("Contents/Owner/DisplayName") !== undefined);
    },
  ],
  [
    "takes a path that ends in a slash",
    async (scene) => {
      await scene.put("key");
      const answer = await scene.ask("GET", "/");
      assert.deepEqual(answer.document.texts("Contents/Key"), ["key"]);
    },
  ],
  [
    "marker begins behind a key, there or not",
    async (scene) => {
      await scene.putAll("bar", "baz", "foo");
      const first = await list(scene, "marker=bar");
      assert.deepEqual(first.keys, ["baz", "foo"]);
      assert.equal(first.found.get("Marker"), "bar");
      assert.deepEqual((await list(scene, "marker=blah")).keys, ["foo"]);
      assert.deepEqual((await list(scene, "marker=zzz")).keys, []);
      assert.deepEqual((await list(scene, "marker=")).keys, ["bar", "baz", "foo"]);
    },
  ],
  [
    "a truncated page without delimiter has no NextMarker: its last key is the marker",
    async (scene) => {
      await scene.putAll("a", "b", "c");
      const page = await list(scene, "max-keys=2");
      assert.deepEqual([page.keys, page.isTruncated, page.next], [["a", "b"], true, undefined]);
      const rest = await list(scene, "marker=b");
      assert.deepEqual([rest.keys, rest.isTruncated], [["c"], false]);
    },
  ],
  [
    "a truncated page with delimiter has a NextMarker that continues behind a common prefix",
    async (scene) => {
      await scene.putAll("a/1", "a/2", "b", "c/1");
      const seen: string[] = [];
      let marker = "";
      for (let page = 0; page < 3; page += 1) {
        const found = await list(scene, `delimiter=/&max-keys=1&marker=${marker}`);
        seen.push(...found.keys, ...found.prefixes);
        marker = found.next ?? "";
      }
      assert.deepEqual(seen, ["a/", "b", "c/"]);
      assert.equal(marker, "");
    },
  ],
  [
    "delimiter and prefix give one level of a tree",
    async (scene) => {
      await scene.putAll("asdf", "boo/bar", "boo/baz/xyzzy", "cquux/thud", "cquux/bla");
      const top = await list(scene, "delimiter=/");
      assert.deepEqual([top.keys, top.prefixes], [["asdf"], ["boo/", "cquux/"]]);
      const boo = await list(scene, "delimiter=/&prefix=boo/");
      assert.deepEqual([boo.keys, boo.prefixes], [["boo/bar"], ["boo/baz/"]]);
    },
  ],
  [
    "a key that begins with the delimiter is below a prefix that is the delimiter",
    async (scene) => {
      await scene.putAll("/a", "/b/c", "d");
      const { keys, prefixes } = await list(scene, "delimiter=/");
      assert.deepEqual([keys, prefixes], [["d"], ["/"]]);
    },
  ],
  [
    "max-keys of 0 gives nothing and is not truncated",
    async (scene) => {
      await scene.putAll("a");
      const { keys, isTruncated } = await list(scene, "max-keys=0");
      assert.deepEqual([keys, isTruncated], [[], false]);
    },
  ],
  [
    "InvalidArgument for a max-keys that is no number",
    async ({ ask }) => assertError(await ask("GET", "?max-keys=blah"), 400, "InvalidArgument"),
  ],
  [
    "encoding-type=url encodes keys and markers",
    async (scene) => {
      await scene.putAll("a+b", "a b");
      const { found, keys } = await list(scene, "encoding-type=url&marker=a%00");
      assert.deepEqual(keys, ["a%20b", "a%2Bb"]);
      assert.equal(found.get("Marker"), "a%00");
    },
  ],
  [
    "gives a thousand keys at most",
    async (scene) => {
      const keys = Array.from(
        { length: 1_003 },
        (_, index) => `k${String(index).padStart(4, "0")}`,
      );
      for (let at = 0; at < keys.length; at += 50) await scene.putAll(...keys.slice(at, at + 50));
      const first = await list(scene);
      assert.deepEqual([first.keys.length, first.isTruncated], [1_000, true]);
      assert.deepEqual((await list(scene, "marker=k0999")).keys, keys.slice(1_000));
    },
  ],
  [
    "200 without a signature where everyone may list",
    async ({ ask, must, put }) => {
      await put("key");
      await must("PUT", "?acl", { headers: { "x-amz-acl": "public-read" } });
      const answer = await ask("GET", "", { as: "nobody" });
      assert.deepEqual(answer.document.texts("Contents/Key"), ["key"]);
    },
  ],
  [
    "AccessDenied without a signature",
    async ({ ask }) => assertError(await ask("GET", "", { as: "nobody" }), 403, "AccessDenied"),
  ],
  [
    "a marker that is shorter than the delimiter is a key like any other",
    async ({ must, putAll }) => {
      await putAll("a", "a-", "a/b", "b", "b/");
      const page = await must("GET", "?marker=a&delimiter=/b");
      assert.deepEqual(page.document.texts("Contents/Key"), ["a-", "b", "b/"]);
      assert.deepEqual(page.document.texts("CommonPrefixes/Prefix"), ["a/b"]);
      const next = await must("GET", "?list-type=2&start-after=a&delimiter=/b");
      assert.deepEqual(next.document.texts("Contents/Key"), ["a-", "b", "b/"]);
    },
  ],
  [
    "names a token as well, which goes on without a list-type",
    async ({ ask, putAll }) => {
      await putAll("a", "b", "c", "d", "e");
      const found: string[] = [];
      let target = "?max-keys=2";
      for (let page = 0; page < 3; page += 1) {
        const { document } = await ask("GET", target);
        found.push(...document.texts("Contents/Key"));
        const token = document.get("NextContinuationToken");
        assert.equal(document.get("IsTruncated"), String(token !== undefined));
        target = `?max-keys=2&continuation-token=${encodeURIComponent(token ?? "")}`;
      }
      assert.deepEqual(found, ["a", "b", "c", "d", "e"]);
    },
  ],
);
