// Every payload of the corpus gets its verdict, however its bytes are split.
import assert from "node:assert/strict";
import { test } from "node:test";
import { requestCorpus } from "../corpus/requests.ts";
import { SeenConnection } from "./connection.ts";

test("the corpus has at least 90 refusals and every name once", () => {
  const refusals = requestCorpus.filter((entry) => typeof entry.expected !== "number");
  assert.ok(refusals.length >= 90, `${refusals.length} refusals`);
  assert.equal(new Set(requestCorpus.map((entry) => entry.name)).size, requestCorpus.length);
});

for (const { name, payload, expected } of requestCorpus) {
  const verb = typeof expected === "number" ? "accepts" : "refuses";
  test(`${verb} ${name}, whole and byte by byte`, () => {
    const bytes = Buffer.from(payload, "latin1");
    for (const size of [bytes.length, 1, 7]) {
      const seen = new SeenConnection();
      for (let at = 0; at < bytes.length; at += size) {
        seen.push(Buffer.from(bytes.subarray(at, at + size)));
      }
      if (typeof expected === "number") {
        assert.equal(seen.refusal, null);
        assert.equal(seen.requests.length, expected);
        assert.equal(seen.pending, false);
      } else {
        assert.deepEqual([seen.refusal?.status, seen.refusal?.code], expected);
        assert.equal(seen.requests.length, 0);
      }
    }
  });
}
