// Generated credentials.
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { createIdSource } from "@platform/kernel/ids";
import { loadCredentials } from "../../src/credentials/credentials.ts";

const ids = createIdSource();
let folder = "";
let path = "";
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "credentials-")), "data");
  path = join(folder, "credentials.env");
});
afterEach(() => rmSync(join(folder, ".."), { recursive: true }));

test("credentials are generated once, of 32 random bytes each, readable only by the owner", async () => {
  const first = await loadCredentials(folder, ["A_TOKEN", "B_SECRET"], {}, ids);
  assert.equal(Buffer.from(first["A_TOKEN"]!, "base64url").length, 32);
  assert.notEqual(first["A_TOKEN"], first["B_SECRET"]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.deepEqual(await loadCredentials(folder, ["A_TOKEN", "B_SECRET"], {}, ids), first);
});

test("a new name is added and the others keep their values", async () => {
  const first = await loadCredentials(folder, ["A_TOKEN"], {}, ids);
  const second = await loadCredentials(folder, ["A_TOKEN", "C_KEY"], {}, ids);
  assert.equal(second["A_TOKEN"], first["A_TOKEN"]);
  assert.equal(second["C_KEY"]!.length, 43);
});

test("a variable of the environment takes precedence and is not stored", async () => {
  const got = await loadCredentials(
    folder,
    ["A_TOKEN", "B_SECRET"],
    { A_TOKEN: "mine", B_SECRET: "" },
    ids,
  );
  assert.equal(got["A_TOKEN"], "mine");
  assert.doesNotMatch(readFileSync(path, "utf8"), /A_TOKEN/);
  assert.match(readFileSync(path, "utf8"), /B_SECRET=/);
});

test("the mode of a file that others may read is corrected", async () => {
  await loadCredentials(folder, ["A_TOKEN"], {}, ids);
  chmodSync(path, 0o644);
  await loadCredentials(folder, ["A_TOKEN"], {}, ids);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("a syntax error is reported by line without showing its text", async () => {
  await loadCredentials(folder, ["A_TOKEN"], {}, ids);
  writeFileSync(path, "# note\nA_TOKEN=ok\nsecret words\n");
  await assert.rejects(loadCredentials(folder, ["A_TOKEN"], {}, ids), (error: Error) => {
    assert.equal(error.message, `${path}:3: expected NAME=value`);
    return true;
  });
});
