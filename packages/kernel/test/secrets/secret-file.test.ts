// The file with generated secrets: created once, kept, and never replaced.
import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { decodeSecret, loadSecretFile, parseEncryptionKeys } from "../../src/secrets/index.ts";

const base = mkdtempSync(join(tmpdir(), "secrets-"));
after(() => rmSync(base, { recursive: true, force: true }));

test("secrets are generated once, for the owner only, and read afterwards", () => {
  const path = join(base, "a", "secrets.json");
  const first = loadSecretFile(path, ["session", "encryption"]);
  assert.notEqual(first.session, first.encryption);
  assert.equal(decodeSecret(first.session)?.length, 32);
  assert.deepEqual(readdirSync(join(base, "a")), ["secrets.json"]);
  chmodSync(path, 0o644);
  assert.deepEqual(loadSecretFile(path, ["session", "encryption"]), { version: 1, ...first });
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("a missing file that is needed and a damaged one are refused", () => {
  const path = join(base, "b", "secrets.json");
  assert.throws(
    () => loadSecretFile(path, ["encryption"], true),
    /is missing: restore it from a backup, because data is encrypted/,
  );
  assert.equal(existsSync(path), false);
  loadSecretFile(path, ["encryption"]);
  for (const text of ["", "{}", '{"encryption":1}', "[1"]) {
    writeFileSync(path, text);
    assert.throws(
      () => loadSecretFile(path, ["encryption"]),
      /is damaged: restore it from a backup/,
    );
  }
});

test("a flipped bit in a key is refused; a file of an earlier version has no checksum", () => {
  const path = join(base, "c", "secrets.json");
  const { encryption } = loadSecretFile(path, ["encryption"]);
  const text = readFileSync(path, "utf8");
  const other = encryption[20] === "A" ? "B" : "A";
  const flipped = `${encryption.slice(0, 20)}${other}${encryption.slice(21)}`;
  writeFileSync(path, text.replace(encryption, flipped));
  assert.throws(() => loadSecretFile(path, ["encryption"]), /is damaged: restore it from a backup/);
  writeFileSync(path, JSON.stringify({ version: 1, encryption: flipped }));
  assert.equal(loadSecretFile(path, ["encryption"]).encryption, flipped);
});

test("keys are raw text, hexadecimal or base64, of 32 bytes each", () => {
  const [hex, base64] = ["5e".repeat(32), Buffer.alloc(32, 1).toString("base64")];
  const keys = parseEncryptionKeys("auth", `hex:${hex}, base64:${base64},${"x".repeat(32)}`);
  assert.deepEqual(
    keys.map((key) => key.length),
    [32, 32, 32],
  );
  for (const bad of ["", "hex:5e", "hex:zz", "base64:!", "short", `hex:${hex},`]) {
    assert.throws(
      () => parseEncryptionKeys("auth", bad),
      /PLATFORM_AUTH_ENCRYPTION_KEYS: each key must/,
    );
  }
});
