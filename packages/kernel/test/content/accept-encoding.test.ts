// Accept-Encoding, with the examples of RFC 9110 section 12.5.3.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseCoding } from "../../src/content/index.ts";

test("the coding with the highest weight is selected, the offered order decides ties", () => {
  const cases: [field: string | undefined, chosen: string][] = [
    [undefined, "identity"],
    ["", "identity"],
    ["compress, gzip", "gzip"],
    ["*", "br"],
    ["compress;q=0.5, gzip;q=1.0", "gzip"],
    ["gzip;q=1.0, identity; q=0.5, *;q=0", "gzip"],
    ["gzip, deflate, br, zstd", "br"],
    ["gzip;q=1.0, br;q=0.9", "gzip"],
    ["GZIP ; Q=0.8", "gzip"],
    ["x-gzip", "gzip"],
    ["br;q=0, *", "zstd"],
    ["br;q=0, zstd;q=0, gzip;q=0", "identity"],
    ["identity;q=1, gzip;q=0.5", "identity"],
    ["gzip;q=0.000", "identity"],
    ["gzip;q=2", "identity"],
    ["gzip;q=0.1234", "identity"],
    ["gzip; level=9", "identity"],
    ["g zip", "identity"],
    [`${"a,".repeat(600)}gzip`, "identity"],
  ];
  for (const [field, chosen] of cases) {
    assert.equal(chooseCoding(field, ["br", "zstd", "gzip"]), chosen, String(field));
  }
  assert.equal(chooseCoding("br, gzip", ["gzip"]), "gzip");
});
