// Generated credentials.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { createIdSource } from "@platform/kernel/ids";
import { loadCredentials } from "../../src/credentials/credentials.ts";

const load = async (names: string[], env: Record<string, string> = {}) => {
  const { credentials } = await loadCredentials(folder, [{ credentials: names }], env, ids);
  return credentials;
};

const ids = createIdSource();
let folder = "";
let path = "";
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "credentials-")), "data");
  path = join(folder, "credentials.env");
});
afterEach(() => rmSync(join(folder, ".."), { recursive: true }));

test("credentials are generated once, of 32 random bytes each, readable only by the owner", async () => {
  const first = await load(["A_TOKEN", "B_SECRET"]);
  assert.equal(Buffer.from(first["A_TOKEN"]!, "base64url").length, 32);
  assert.notEqual(first["A_TOKEN"], first["B_SECRET"]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.deepEqual(await load(["A_TOKEN", "B_SECRET"]), first);
});

test("a new name is added and the others keep their values", async () => {
  const first = await load(["A_TOKEN"]);
  const second = await load(["A_TOKEN", "C_KEY"]);
  assert.equal(second["A_TOKEN"], first["A_TOKEN"]);
  assert.equal(second["C_KEY"]!.length, 43);
});

test("a variable of the environment takes precedence and is not stored", async () => {
  const got = await load(["A_TOKEN", "B_SECRET"], { A_TOKEN: "mine", B_SECRET: "" });
  assert.equal(got["A_TOKEN"], "mine");
  assert.doesNotMatch(readFileSync(path, "utf8"), /A_TOKEN/);
  assert.match(readFileSync(path, "utf8"), /B_SECRET=/);
});

test("a changed value is reported once, and an added one too", async () => {
  const loadAll = () => loadCredentials(folder, [{ credentials: ["A_TOKEN"] }], {}, ids);
  const { credentials } = await loadAll();
  assert.equal((await loadAll()).isChanged, false);
  const text = readFileSync(path, "utf8");
  const value = credentials["A_TOKEN"]!;
  const other = String.fromCharCode(value.charCodeAt(5) === 65 ? 66 : 65);
  const flipped = `${value.slice(0, 5)}${other}${value.slice(6)}`;
  writeFileSync(path, text.replace(value, flipped));
  const changed = await loadAll();
  assert.deepEqual([changed.isChanged, changed.credentials["A_TOKEN"]], [true, flipped]);
  assert.equal((await loadAll()).isChanged, false);
  writeFileSync(path, readFileSync(path, "utf8").replace("# sum", "B=mine\n# sum"));
  assert.equal((await loadAll()).isChanged, true);
  writeFileSync(path, readFileSync(path, "utf8").replace("# sum", "# svm"));
  assert.equal((await loadAll()).isChanged, true);
  assert.equal((await loadAll()).isChanged, false);
  // A file of an earlier version.
  const old = readFileSync(path, "utf8").replace(/^# s[uv]m .*\n/gm, "");
  writeFileSync(path, old.replace(" Before it is a checksum.", ""));
  assert.equal((await loadAll()).isChanged, false);
});

test("a file that is cut off anywhere is refused, and not completed", async () => {
  await load(["A_TOKEN", "B_SECRET"]);
  const text = readFileSync(path, "utf8");
  for (let length = 0; length < text.length - 1; length += 1) {
    writeFileSync(path, text.slice(0, length));
    await assert.rejects(
      load(["A_TOKEN", "B_SECRET"]),
      /cut off/,
      JSON.stringify(text.slice(0, length)),
    );
    assert.equal(readFileSync(path, "utf8"), text.slice(0, length));
  }
  writeFileSync(path, `${text}C_KEY=added\n`);
  assert.equal((await load(["A_TOKEN", "C_KEY"]))["C_KEY"], "added");
  // As former versions wrote it.
  writeFileSync(path, "A_TOKEN=one\nB_SECRET=two\n");
  assert.equal((await load(["A_TOKEN"]))["A_TOKEN"], "one");
  writeFileSync(path, "A_TOKEN=one\nB_SECRET=tw");
  await assert.rejects(load(["A_TOKEN"]), /cut off/);
});

test("the mode of a file that others may read is corrected", async () => {
  await load(["A_TOKEN"]);
  chmodSync(path, 0o644);
  await load(["A_TOKEN"]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("a syntax error is reported by line without showing its text", async () => {
  await load(["A_TOKEN"]);
  writeFileSync(path, "# note\nA_TOKEN=ok\nsecret words\n");
  await assert.rejects(load(["A_TOKEN"]), (error: Error) => {
    assert.match(
      error.message,
      /credentials\.env:3: expected NAME=value: correct the line, or restore/,
    );
    return true;
  });
});

test("secrets of the first start are not generated again once their file exists", async () => {
  const firstCredentials = { names: ["ADMIN_PASSWORD"], unless: "auth/auth.db" };
  const needs = [{ credentials: ["A_TOKEN"], firstCredentials }];
  const first = await loadCredentials(folder, needs, {}, ids);
  assert.equal(first.isNew, true);
  assert.equal(first.credentials["ADMIN_PASSWORD"]!.length, 43);
  mkdirSync(join(folder, "auth"));
  writeFileSync(join(folder, "auth", "auth.db"), "");
  assert.deepEqual(await loadCredentials(folder, needs, {}, ids), { ...first, isNew: false });
  rmSync(path);
  const second = await loadCredentials(folder, needs, {}, ids);
  assert.equal(second.isNew, true);
  assert.equal(second.credentials["ADMIN_PASSWORD"], "");
  assert.notEqual(second.credentials["A_TOKEN"], first.credentials["A_TOKEN"]);
  assert.doesNotMatch(readFileSync(path, "utf8"), /ADMIN_PASSWORD/);
});

test("credentials survive a crash between the write of new ones and the rename", async () => {
  const first = await load(["A_TOKEN"]);
  const stored = readFileSync(path, "utf8");
  const modules = new URL("../../src/credentials/credentials.ts", import.meta.url).href;
  const ids = import.meta.resolve("@platform/kernel/ids");
  // The rename ends the process as a crash does.
  const program = `
    import fs from "node:fs";
    import { syncBuiltinESMExports } from "node:module";
    fs.renameSync = () => process.kill(process.pid, "SIGKILL");
    syncBuiltinESMExports();
    const { loadCredentials } = await import(${JSON.stringify(modules)});
    const { createIdSource } = await import(${JSON.stringify(ids)});
    const entries = [{ credentials: ["A_TOKEN", "NEW_TOKEN"] }];
    await loadCredentials(${JSON.stringify(folder)}, entries, {}, createIdSource());`;
  const args = ["--input-type=module-typescript", "-e", program];
  const run = spawnSync(process.execPath, args);
  assert.equal(run.signal, "SIGKILL", run.stderr.toString());
  assert.equal(readFileSync(path, "utf8"), stored);
  const [draft] = readdirSync(folder).filter((name) => name.endsWith(".new"));
  assert.match(readFileSync(join(folder, draft!), "utf8"), /^NEW_TOKEN=/m);
  const next = await load(["A_TOKEN", "NEW_TOKEN"]);
  assert.equal(next["A_TOKEN"], first["A_TOKEN"]);
});
