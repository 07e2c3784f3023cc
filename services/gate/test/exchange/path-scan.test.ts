// The target of a request: what is refused, what it becomes, and where a prefix may end.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hashPrefix, PathScan, type PathFault } from "../../src/exchange/path-scan.ts";

function scan(target: string): { scan: PathScan; fault: PathFault | null } {
  const path = new PathScan();
  const bytes = Buffer.from(`xx${target}yy`, "latin1");
  const fault = path.read(bytes, 2, bytes.length - 2, 10_000);
  return { scan: path, fault };
}

test("a normalized path and any query stay unchanged", () => {
  for (const target of [
    "/",
    "/a",
    "/a/",
    "/a/b.c/..d/x~y",
    "/a?x=%2f..//\\",
    "/a:b@c;d=1,2!$&'()*+=",
  ]) {
    const { scan: path, fault } = scan(target);
    assert.equal(fault, null, target);
    assert.equal(path.clean, true, target);
    assert.equal(path.readTarget(), target);
  }
});

test("other paths are normalized", () => {
  const table: [string, string][] = [
    ["//a", "/a"],
    ["/a//b///c", "/a/b/c"],
    ["/a/./b", "/a/b"],
    ["/a/../b", "/b"],
    ["/a/b/..", "/a/"],
    ["/a/.", "/a/"],
    ["/.", "/"],
    ["/./", "/"],
    ["/a/..", "/"],
    ["/a/b/../../c", "/c"],
    ["/%61%2e%7e", "/a.~"],
    ["/a/%2e%2E/b", "/b"],
    ["/%e2%82%ac", "/%E2%82%AC"],
    ["/%41?%2e%2e/", "/A?%2e%2e/"],
    ["/a//?q", "/a/?q"],
    ["/a//..//b", "/b"],
    ["/a/b//", "/a/b/"],
    ["/a%3ab", "/a%3Ab"],
  ];
  for (const [target, expected] of table) {
    const { scan: path, fault } = scan(target);
    assert.equal(fault, null, target);
    assert.equal(path.readTarget(), expected, target);
    assert.equal(path.clean, false, target);
  }
});

test("ambiguous targets are refused", () => {
  const table: [string, PathFault][] = [
    ["", "not-origin-form"],
    ["*", "not-origin-form"],
    ["a", "not-origin-form"],
    ["/..", "climbs-above-root"],
    ["/../a", "climbs-above-root"],
    ["/a/../../b", "climbs-above-root"],
    ["/%2e%2e/b", "climbs-above-root"],
    ["//../b", "climbs-above-root"],
    ["/%", "bad-percent-encoding"],
    ["/%2", "bad-percent-encoding"],
    ["/%zz", "bad-percent-encoding"],
    ["/%2?a", "bad-percent-encoding"],
    ["/a%00b", "encoded-nul"],
    ["/a\\b", "backslash"],
    ["/a#b", "bad-character"],
    ["/a/..;/admin", "path-parameter-on-dot-segment"],
    ["/a/.;x/admin", "path-parameter-on-dot-segment"],
  ];
  for (const [target, expected] of table) assert.equal(scan(target).fault, expected, target);
});

test("encoded separators are kept and reported", () => {
  for (const target of ["/a%2fb", "/a%2Fb", "/a%5cb"]) {
    const { scan: path, fault } = scan(target);
    assert.equal(fault, null);
    assert.equal(path.hasEncodedSeparator, true);
    assert.equal(path.readPath(), target.toUpperCase().replace("/A", "/a").replace(/B$/, "b"));
  }
  assert.equal(scan("/a%2eb").scan.hasEncodedSeparator, false);
});

test("a raw path is safe only if it stays below its prefix when decoded", () => {
  const table: [string, number, boolean][] = [
    ["/s3/a%2fb", 3, true],
    ["/s3/a//b", 3, true],
    ["/s3/a/../b", 3, true],
    ["/s3/a%2f..%2f..%2fb", 3, false],
    ["/s3/a%5c..%5c..%5c..%5cb", 3, false],
    ["/s3/..%2fadmin", 3, false],
    ["/%733/a", 3, false],
    ["/x/../s3/a", 3, false],
    ["/s3/a%2f..;x%2f..%2fb", 3, false],
  ];
  for (const [target, prefixLength, expected] of table) {
    const { scan: path, fault } = scan(target);
    assert.equal(fault, null, target);
    assert.equal(path.isRawSafe(prefixLength), expected, target);
  }
});

test("normalization is idempotent, with marks at the end of each segment", () => {
  const piece = fc.constantFrom("a", "b.c", ".", "..", "%2e", "%41", "%2F", "", "%e2", "x;y", "~");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (segments) => {
      const first = scan(`/${segments.join("/")}?q`);
      if (first.fault !== null) return;
      const path = first.scan.readPath();
      assert.ok(!/\/\/|\/\.\.?(\/|$)/.test(path), path);
      const again = scan(path);
      assert.equal(again.fault, null);
      assert.equal(again.scan.readPath(), path);
      const expected = new Map<number, number>();
      for (let length = 1; length <= path.length; length++) {
        const isEnd = path[length - 1] === "/" || path[length] === "/" || length === path.length;
        if (isEnd) expected.set(length, hashPrefix(Buffer.from(path.slice(0, length), "latin1")));
      }
      for (const one of [first.scan, again.scan]) {
        const lengths = [...one.markLengths.subarray(0, one.marks)];
        const hashes = [...one.markHashes.subarray(0, one.marks)];
        assert.deepEqual(lengths, [...expected.keys()]);
        assert.deepEqual(hashes, [...expected.values()]);
      }
    }),
  );
});

test("a path of thousands of segments stays within the maximum number of marks", () => {
  for (const target of ["/a".repeat(5_000), "/a".repeat(5_000).concat("%2F")]) {
    const { scan: path, fault } = scan(target);
    assert.equal(fault, null);
    assert.ok(path.marks <= path.markLengths.length);
    assert.equal(path.readPath(), target);
  }
});
