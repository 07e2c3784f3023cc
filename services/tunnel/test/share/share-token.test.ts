// Signed tokens of share links.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { readDuration } from "../../src/share/duration.ts";
import { signToken, verifyToken } from "../../src/share/share-token.ts";

const secret = randomBytes(32);
const claims = { id: "0190a0b0-c0d0-7000-8000-0123456789ab", expiresAt: 1_795_320_069_000 };

test("a token is read back for its purpose and tunnel only", () => {
  const token = signToken(secret, "link", "t1", claims);
  assert.deepEqual(verifyToken(secret, "link", "t1", token), claims);
  assert.equal(verifyToken(secret, "cookie", "t1", token), undefined);
  assert.equal(verifyToken(secret, "link", "t2", token), undefined);
  assert.equal(verifyToken(randomBytes(32), "link", "t1", token), undefined);
});

test("no changed character is accepted", () => {
  const token = signToken(secret, "link", "t1", claims);
  for (let at = 0; at < token.length; at++) {
    const other = token[at] === "A" ? "B" : "A";
    const changed = token.slice(0, at) + other + token.slice(at + 1);
    assert.equal(verifyToken(secret, "link", "t1", changed), undefined, String(at));
  }
  for (const text of ["", "pts_", token.slice(0, -1), `${token}A`, token.toUpperCase()]) {
    assert.equal(verifyToken(secret, "link", "t1", text), undefined);
  }
});

test("durations have one number and one unit", () => {
  assert.equal(readDuration("15m"), 900_000);
  assert.equal(readDuration("1h"), 3_600_000);
  assert.equal(readDuration("7d"), 604_800_000);
  for (const text of ["", "1", "h", "1.5h", "01h", "1h30m", " 1h", "1H"]) {
    assert.equal(readDuration(text), undefined, text);
  }
});
