// ListObjectsV2: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
import assert from "node:assert/strict";
import { assertError, casesOf, md5, readResult, type Scene } from "../case.ts";

async function list({ ask }: Scene, query = "") {
  const target = query === "" ? "?list-type=2" : `?list-type=2&${query}`;
  const found = readResult(await ask("GET", target), "ListBucketResult");
  return {
    found,
    keys: found.texts("Contents/Key"),
    prefixes: found.texts("CommonPrefixes/Prefix"),
    isTruncated: found.get("IsTruncated") === "true",
    next: found.get("NextContinuationToken"),
  };
}

/** Keys and prefixes of all pages, each page in brackets. */
async function listPages(scene: Scene, query: string): Promise<string[][]> {
  const pages: string[][] = [];
  let token: string | undefined;
  do {
    const more = token === undefined ? "" : `&continuation-token=${encodeURIComponent(token)}`;
    const page = await list(scene, `${query}${more}`);
    pages.push([...page.keys, ...page.prefixes]);
    assert.equal(page.isTruncated, page.next !== undefined);
    token = page.next;
  } while (token !== undefined && pages.length < 50);
  return pages;
}

export const cases = casesOf(
  "ListObjectsV2",
  [
    "of an empty bucket has what it was asked for and no contents",
    async (scene) => {
      const { found, keys } = await list(scene);
      assert.deepEqual(keys, []);
      assert.equal(found.get("Name"), scene.bucket);
      assert.equal(found.get("Prefix"), "");
      assert.equal(found.get("KeyCount"), "0");
      assert.equal(found.get("MaxKeys"), "1000");
      assert.equal(found.get("IsTruncated"), "false");
      assert.equal(found.get("NextContinuationToken"), undefined);
    },
  ],
  [
    "tells key, time, ETag in quotes, size and storage class of each object",
    async (scene) => {
      await scene.put("key", "hello");
      const { found } = await list(scene);
      const [item] = found.all("Contents");
      assert.equal(item!.get("Key"), "key");
      assert.match(item!.get("LastModified")!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.equal(item!.get("ETag"), `"${md5("hello")}"`);
      assert.equal(item!.get("Size"), "5");
      assert.equal(item!.get("StorageClass"), "STANDARD");
      assert.equal(item!.get("Owner"), undefined);
    },
  ],
  [
    "tells owners to who asks for them",
    async (scene) => {
      await scene.put("key");
      const { found } = await list(scene, "fetch-owner=true");
      assert.match(found.get("Contents/Owner/ID")!, /^[0-9a-f]{64}$/);
      assert.deepEqual((await list(scene, "fetch-owner=false")).found.all("Contents/Owner"), []);
    },
  ],
  [
    "sorts by the bytes of UTF-8",
    async (scene) => {
      const keys = ["a", "a b", "a/b", "aa", "B", "b", "ä", "～", "😀", "!", "~"];
      await scene.putAll(...keys);
      const sorted = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      assert.deepEqual((await list(scene)).keys, sorted);
    },
  ],
  [
    "prefix gives the keys that begin with it",
    async (scene) => {
      await scene.putAll("foo/a", "foo/b", "foobar", "quux");
      assert.deepEqual((await list(scene, "prefix=foo/")).keys, ["foo/a", "foo/b"]);
      assert.deepEqual((await list(scene, "prefix=foo")).keys, ["foo/a", "foo/b", "foobar"]);
      assert.deepEqual((await list(scene, "prefix=")).keys.length, 4);
      assert.deepEqual((await list(scene, "prefix=x")).keys, []);
    },
  ],
  [
    "takes a prefix of any characters",
    async (scene) => {
      await scene.putAll("a%b", "a\nb", "ab", "a&b", "a_b");
      assert.deepEqual((await list(scene, "prefix=a%0A&encoding-type=url")).keys, ["a%0Ab"]);
      assert.deepEqual((await list(scene, "prefix=a%25")).keys, ["a%b"]);
      assert.deepEqual((await list(scene, "prefix=a_")).keys, ["a_b"]);
    },
  ],
  [
    "delimiter rolls keys up into common prefixes",
    async (scene) => {
      await scene.putAll("a", "b/1", "b/2", "c/1/2", "d");
      const { found, keys, prefixes } = await list(scene, "delimiter=/");
      assert.deepEqual(keys, ["a", "d"]);
      assert.deepEqual(prefixes, ["b/", "c/"]);
      assert.equal(found.get("Delimiter"), "/");
      assert.equal(found.get("KeyCount"), "4");
    },
  ],
  [
    "delimiter and prefix give one level of a tree, its own marker included",
    async (scene) => {
      await scene.putAll("a/", "a/b/c", "a/d", "a/e/", "f");
      const { keys, prefixes } = await list(scene, "prefix=a/&delimiter=/");
      assert.deepEqual(keys, ["a/", "a/d"]);
      assert.deepEqual(prefixes, ["a/b/", "a/e/"]);
    },
  ],
  [
    "a prefix that ends in the midst of a name rolls up behind it",
    async (scene) => {
      await scene.putAll("bar", "bax/1", "baz/2", "cab");
      const { keys, prefixes } = await list(scene, "prefix=ba&delimiter=/");
      assert.deepEqual(keys, ["bar"]);
      assert.deepEqual(prefixes, ["bax/", "baz/"]);
    },
  ],
  [
    "takes any delimiter: a letter, a space, a dot, a percent sign, several characters",
    async (scene) => {
      await scene.putAll("bar", "b r", "b.r", "b%r", "b--r", "foo");
      assert.deepEqual((await list(scene, "delimiter=a")).prefixes, ["ba"]);
      assert.deepEqual((await list(scene, "delimiter=%20")).prefixes, ["b "]);
      assert.deepEqual((await list(scene, "delimiter=.")).prefixes, ["b."]);
      assert.deepEqual((await list(scene, "delimiter=%25")).prefixes, ["b%"]);
      assert.deepEqual((await list(scene, "delimiter=--")).prefixes, ["b--"]);
    },
  ],
  [
    "takes a delimiter of letters that are not ASCII",
    async (scene) => {
      await scene.putAll("a😀1", "a😀2", "aé1");
      const { keys, prefixes } = await list(scene, "delimiter=%F0%9F%98%80");
      assert.deepEqual(keys, ["aé1"]);
      assert.deepEqual(prefixes, ["a😀"]);
    },
  ],
  [
    "an empty delimiter is none",
    async (scene) => {
      await scene.putAll("a/b");
      const { found, keys } = await list(scene, "delimiter=");
      assert.deepEqual(keys, ["a/b"]);
      assert.equal(found.get("Delimiter"), undefined);
    },
  ],
  [
    "a delimiter that no key holds rolls up nothing",
    async (scene) => {
      await scene.putAll("a", "b");
      const { keys, prefixes } = await list(scene, "delimiter=/");
      assert.deepEqual([keys, prefixes], [["a", "b"], []]);
    },
  ],
  [
    "max-keys gives pages that tokens continue, without gap or repetition",
    async (scene) => {
      const keys = Array.from({ length: 7 }, (_, index) => `key-${index}`);
      await scene.putAll(...keys);
      const pages = await listPages(scene, "max-keys=3");
      assert.deepEqual(pages, [keys.slice(0, 3), keys.slice(3, 6), keys.slice(6)]);
    },
  ],
  [
    "a page that holds the last key is not truncated",
    async (scene) => {
      await scene.putAll("a", "b");
      const { isTruncated, next } = await list(scene, "max-keys=2");
      assert.deepEqual([isTruncated, next], [false, undefined]);
    },
  ],
  [
    "common prefixes count as keys and come once over all pages",
    async (scene) => {
      await scene.putAll("a/1", "a/2", "a/3", "b", "c/1", "c/2", "d");
      const pages = await listPages(scene, "delimiter=/&max-keys=1");
      assert.deepEqual(pages, [["a/"], ["b"], ["c/"], ["d"]]);
    },
  ],
  [
    "pages within a prefix stay within it",
    async (scene) => {
      await scene.putAll("a/1", "b/1", "b/2", "b/3/4", "c/1");
      const pages = await listPages(scene, "prefix=b/&delimiter=/&max-keys=1");
      assert.deepEqual(pages, [["b/1"], ["b/2"], ["b/3/"]]);
    },
  ],
  [
    "max-keys of 0 gives nothing and is not truncated",
    async (scene) => {
      await scene.putAll("a");
      const { found, keys, isTruncated } = await list(scene, "max-keys=0");
      assert.deepEqual([keys, isTruncated], [[], false]);
      assert.equal(found.get("MaxKeys"), "0");
      assert.equal(found.get("KeyCount"), "0");
    },
  ],
  [
    "max-keys above 1000 gives 1000",
    async (scene) => {
      assert.equal((await list(scene, "max-keys=5000")).found.get("MaxKeys"), "1000");
    },
  ],
  [
    "InvalidArgument for a max-keys that is no number",
    async ({ ask }) => {
      for (const max of ["-1", "blah", "1.5", "99999999999"]) {
        const answer = await ask("GET", `?list-type=2&max-keys=${max}`);
        assertError(answer, 400, "InvalidArgument");
        assert.equal(answer.document.get("ArgumentName"), "max-keys");
      }
    },
  ],
  [
    "start-after begins behind a key, there or not",
    async (scene) => {
      await scene.putAll("a", "b", "c");
      const first = await list(scene, "start-after=a");
      assert.deepEqual(first.keys, ["b", "c"]);
      assert.equal(first.found.get("StartAfter"), "a");
      assert.deepEqual((await list(scene, "start-after=aa")).keys, ["b", "c"]);
      assert.deepEqual((await list(scene, "start-after=z")).keys, []);
    },
  ],
  [
    "start-after within a common prefix still gives what follows below it",
    async (scene) => {
      await scene.putAll("a/1", "a/2", "b");
      const { keys, prefixes } = await list(scene, "delimiter=/&start-after=a/1");
      assert.deepEqual([prefixes, keys], [["a/"], ["b"]]);
    },
  ],
  [
    "a token goes before start-after",
    async (scene) => {
      await scene.putAll("a", "b", "c", "d");
      const { next } = await list(scene, "start-after=a&max-keys=1");
      const rest = await list(
        scene,
        `start-after=a&continuation-token=${encodeURIComponent(next!)}`,
      );
      assert.deepEqual(rest.keys, ["c", "d"]);
      assert.equal(rest.found.get("ContinuationToken"), next);
    },
  ],
  [
    "InvalidArgument for a token that was never given",
    async ({ ask }) => {
      for (const token of ["", "made-up", "%00"]) {
        const answer = await ask("GET", `?list-type=2&continuation-token=${token}`);
        assertError(answer, 400, "InvalidArgument");
      }
    },
  ],
  [
    "encoding-type=url encodes keys, prefixes and what was asked for",
    async (scene) => {
      await scene.putAll("a b/c+d", "a b/é/x");
      const { found, keys, prefixes } = await list(
        scene,
        "prefix=a%20b/&delimiter=/&start-after=a%20b&encoding-type=url",
      );
      assert.deepEqual(keys, ["a%20b/c%2Bd"]);
      assert.deepEqual(prefixes, ["a%20b/%C3%A9/"]);
      assert.equal(found.get("Prefix"), "a%20b/");
      assert.equal(found.get("StartAfter"), "a%20b");
      assert.equal(found.get("EncodingType"), "url");
    },
  ],
  [
    "InvalidArgument for another encoding",
    async ({ ask }) => {
      const answer = await ask("GET", "?list-type=2&encoding-type=base64");
      assertError(answer, 400, "InvalidArgument");
    },
  ],
  [
    "InvalidArgument for another list type",
    async ({ ask }) => assertError(await ask("GET", "?list-type=3"), 400, "InvalidArgument"),
  ],
  [
    "escapes what XML does not take in keys",
    async (scene) => {
      const keys = ["<a>&\"'", "a\tb", "a\rb"];
      await scene.putAll(...keys);
      assert.deepEqual((await list(scene)).keys.toSorted(), keys.toSorted());
    },
  ],
  [
    "shows each live object once, whatever versions there are",
    async (scene) => {
      await scene.setVersioning("Enabled");
      await scene.put("a", "1");
      await scene.put("a", "2");
      await scene.put("b", "1");
      await scene.must("DELETE", "/b");
      const { found, keys } = await list(scene);
      assert.deepEqual(keys, ["a"]);
      assert.equal(found.get("Contents/ETag"), `"${md5("2")}"`);
    },
  ],
  [
    "shows what was put and hides what was deleted at once",
    async (scene) => {
      await scene.put("a");
      assert.deepEqual((await list(scene)).keys, ["a"]);
      await scene.must("DELETE", "/a");
      assert.deepEqual((await list(scene)).keys, []);
    },
  ],
  [
    "names the checksum's algorithm of each object",
    async (scene) => {
      await scene.put("a", "123456789", { "x-amz-checksum-crc32": "y/Q5Jg==" });
      const { found } = await list(scene);
      assert.equal(found.get("Contents/ChecksumAlgorithm"), "CRC32");
      assert.equal(found.get("Contents/ChecksumType"), "FULL_OBJECT");
    },
  ],
  [
    "NoSuchBucket where the bucket is not there",
    async ({ client, bucket }) => {
      assertError(await client.send("GET", `/${bucket}-not?list-type=2`), 404, "NoSuchBucket");
    },
  ],
  [
    "AccessDenied without a signature",
    async ({ ask }) => {
      assertError(await ask("GET", "?list-type=2", { as: "nobody" }), 403, "AccessDenied");
    },
  ],
);
