import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { createSecretBox } from "../../src/secrets/index.ts";

test("sealed text opens only in its own place", () => {
  const box = createSecretBox("auth", [randomBytes(32)]);
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const sealed = box.seal(text, "table.column.1");
      assert.equal(box.open(sealed, "table.column.1"), Buffer.from(text).toString("utf8"));
      assert.throws(() => box.open(sealed, "table.column.2"), /damaged, or moved/);
    }),
  );
});

test("any changed character is detected", () => {
  const box = createSecretBox("auth", [randomBytes(32)]);
  const sealed = box.seal("a secret", "place");
  for (let index = 0; index < sealed.length; index += 1) {
    const other = sealed[index] === "A" ? "B" : "A";
    const changed = sealed.slice(0, index) + other + sealed.slice(index + 1);
    // The last base64url character may contain unused bits.
    if (Buffer.from(changed, "base64url").equals(Buffer.from(sealed, "base64url"))) continue;
    if (index === sealed.length - 1) continue;
    assert.throws(() => box.open(changed, "place"), `at ${index}`);
  }
  for (const broken of ["", "v1", "v1..", "v2.a.b", "v1.abcd"]) {
    assert.throws(() => box.open(broken, "place"));
  }
});

test("the first key seals, every key opens, and text sealed with another key is stale", () => {
  const [one, two] = [randomBytes(32), randomBytes(32)];
  const old = createSecretBox("auth", [one]).seal("x", "p");
  const box = createSecretBox("auth", [two, one]);
  assert.equal(box.open(old, "p"), "x");
  assert.equal(box.isStale(old), true);
  assert.equal(box.isStale(box.seal("x", "p")), false);
  assert.throws(
    () => createSecretBox("auth", [two]).open(old, "p"),
    /PLATFORM_AUTH_ENCRYPTION_KEYS/,
  );
  assert.throws(() => createSecretBox("auth", []), TypeError);
  assert.throws(() => createSecretBox("auth", [randomBytes(16)]), TypeError);
});
