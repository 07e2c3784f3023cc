// Pages of listings that exceed a megabyte.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "./serving.ts";

const KEY_BYTES_MAX = 1_024;
const KEYS = 400;

test("a page of hundreds of the longest keys is complete, URL-encoded three times as long", async () => {
  await using serving = await serve();
  const { s3 } = serving;
  await s3.must("PUT", "/long");
  const digits = 4;
  const filling = "ä".repeat((KEY_BYTES_MAX - digits) / 2);
  const keys = Array.from({ length: KEYS }, (_, index) => String(index).padStart(digits, "0"));
  for (let at = 0; at < KEYS; at += 50) {
    const some = keys.slice(at, at + 50);
    await Promise.all(
      some.map((key) => s3.must("PUT", `/long/${key}${encodeURIComponent(filling)}`)),
    );
  }
  const plain = (await s3.must("GET", "/long?list-type=2")).body.toString();
  assert.deepEqual(
    [...plain.matchAll(/<Key>(\d+)ä+<\/Key>/g)].map(([, key]) => key),
    keys,
  );
  const coded = (await s3.must("GET", "/long?list-type=2&encoding-type=url")).body;
  assert.equal(coded.toString().match(/<Key>\d+(?:%C3%A4)+<\/Key>/g)?.length, KEYS);
  assert.ok(coded.length > KEYS * KEY_BYTES_MAX * 3);
  assert.ok(coded.toString().endsWith("</ListBucketResult>"));
});
