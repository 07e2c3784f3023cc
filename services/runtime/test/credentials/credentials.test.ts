// Generated credentials: made once, kept, for the owner alone.
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

test("they are generated once, with 32 random bytes each, readable for the owner alone", async () => {
  const first = await loadCredentials(folder, ["A_TOKEN", "B_SECRET"], {}, ids);
  assert.equal(Buffer.from(first["A_TOKEN"]!, "base64url").length, 32);
  assert.notEqual(first["A_TOKEN"], first["B_SECRET"]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.deepEqual(await loadCredentials(folder, ["A_TOKEN", "B_SECRET"], {}, ids), first);
});

test("a name that is new is added and the others stay", async () => {
  const first = await loadCredentials(folder, ["A_TOKEN"], {}, ids);
  const second = await loadCredentials(folder, ["A_TOKEN", "C_KEY"], {}, ids);
  assert.equal(second["A_TOKEN"], first["A_TOKEN"]);
  assert.equal(second["C_KEY"]!.length, 43);
});

test("the environment's value wins and is not stored", async () => {
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

test("a file that others may read is closed again", async () => {
  await loadCredentials(folder, ["A_TOKEN"], {}, ids);
  chmodSync(path, 0o644);
  await loadCredentials(folder, ["A_TOKEN"], {}, ids);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("a file that is not understood is refused by line, without showing it", async () => {
  await loadCredentials(folder, ["A_TOKEN"], {}, ids);
  writeFileSync(path, "# note\nA_TOKEN=ok\nsecret words\n");
  await assert.rejects(loadCredentials(folder, ["A_TOKEN"], {}, ids), (error: Error) => {
    assert.equal(error.message, `${path}:3: expected NAME=value`);
    return true;
  });
});
