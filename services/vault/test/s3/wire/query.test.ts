// Queries of requests and their signed form.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readQuery } from "../../../src/s3/wire/query.ts";
import { canonicalizeQuery, parseQuery } from "../../../src/s3/wire/uri.ts";

test("the signed form of a query is the same whether or not it was sent in that form", () => {
  const name = fc.constantFrom("a", "b", "X-Amz-Signature", "x", "a.b", "%61", "a%2Fb", "é", "");
  const value = fc.constantFrom("", "1", "a%2Fb", "a%2fb", "%41", "%C3%A9", "a+b", "a=b", "/", "~");
  const parameter = fc.oneof(
    fc.tuple(name, value).map(([given, text]) => `${given}=${text}`),
    name,
  );
  const raw = fc
    .array(parameter, { maxLength: 5 })
    .chain((parameters) =>
      fc.constantFrom(
        parameters.join("&"),
        parameters.toSorted().join("&"),
        [...parameters.toSorted(), "X-Amz-Signature=1"].join("&"),
        `${parameters[0]}&`,
      ),
    );
  const skip = fc.constantFrom(undefined, "X-Amz-Signature", "a", "b");
  fc.assert(
    fc.property(raw, skip, (text, skipped) => {
      const expected = canonicalizeQuery(parseQuery(text), skipped);
      assert.equal(readQuery(text).canonicalize(skipped), expected, text);
    }),
    { numRuns: 2_000 },
  );
});

test("a query tells the parameters of a signature from the others", () => {
  const query = readQuery(
    "versionId=1&X-Amz-Date=d&x-amz-acl=private&X-Store-Signature=s&versionId=2&X-Amz-Security-Token=t",
  );
  assert.equal(query.get("versionId"), "1");
  assert.equal(query.has("X-Amz-Date"), false);
  assert.deepEqual(
    query.others.map(([name]) => name),
    ["versionId", "x-amz-acl", "versionId", "X-Amz-Security-Token"],
  );
  assert.equal(query.presigned?.Signature?.pair[1], "s");
  assert.equal(query.isPresigned, true);
  assert.equal(readQuery("AWSAccessKeyId=a&X-Amz-Date=d").isPresigned, true);
  assert.equal(readQuery("X-Amz-Date=d").isPresigned, false);
});
