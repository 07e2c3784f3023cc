// Replacing small files: durable, private, and never half done.
import assert from "node:assert/strict";
import fs, {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { spawnSync } from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, mock, test } from "node:test";
import { createFileDraft, replaceFile, replaceFileSync } from "../../src/files/index.ts";

const folder = mkdtempSync(join(tmpdir(), "private-file-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const path = join(folder, "secret");

test("the file's data is on disk before its name is, and the name before the call returns", () => {
  const calls: string[] = [];
  const syncFile = fs.fsyncSync.bind(fs);
  const rename = fs.renameSync.bind(fs);
  mock.method(fs, "fsyncSync", (descriptor: number) => {
    calls.push(fs.fstatSync(descriptor).isDirectory() ? "sync folder" : "sync file");
    syncFile(descriptor);
  });
  mock.method(fs, "renameSync", (from: string, to: string) => {
    calls.push("rename");
    rename(from, to);
  });
  syncBuiltinESMExports();
  try {
    replaceFileSync(path, "one");
  } finally {
    mock.restoreAll();
    syncBuiltinESMExports();
  }
  assert.deepEqual(calls, ["sync file", "rename", "sync folder"]);
  assert.equal(readFileSync(path, "utf8"), "one");
});

test("a replaced file is private, whatever the old one was", () => {
  replaceFileSync(path, "one");
  chmodSync(path, 0o644);
  replaceFileSync(path, "two");
  assert.equal(readFileSync(path, "utf8"), "two");
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("a discarded draft leaves the file as it was, and no other file", () => {
  replaceFileSync(path, "kept");
  createFileDraft(path).discard();
  assert.equal(readFileSync(path, "utf8"), "kept");
  assert.deepEqual(readdirSync(folder), ["secret"]);
});

test("folders and links are not replaced", () => {
  const link = join(folder, "link");
  symlinkSync(path, link);
  for (const place of [folder, link])
    assert.throws(() => createFileDraft(place), /is not a regular file/);
  rmSync(link);
  assert.throws(() => replaceFileSync(join(folder, "missing", "file"), ""), { code: "ENOENT" });
});

test("a file survives a crash between the write of its draft and the rename", async () => {
  const place = join(folder, "crash");
  const modules = new URL("../../src/files/index.ts", import.meta.url).href;
  for (const name of ["replaceFileSync", "replaceFile"]) {
    replaceFileSync(place, "KEY=old\n");
    // The rename ends the process as a crash does: the draft is on disk, the name still that of the old file.
    const program = `
      import fs from "node:fs";
      import { syncBuiltinESMExports } from "node:module";
      fs.renameSync = fs.promises.rename = () => process.kill(process.pid, "SIGKILL");
      syncBuiltinESMExports();
      const files = await import(${JSON.stringify(modules)});
      await files.${name}(${JSON.stringify(place)}, "KEY=new\\n");`;
    const run = spawnSync(process.execPath, ["--input-type=module-typescript", "-e", program]);
    assert.equal(run.signal, "SIGKILL", `${name}: ${run.stderr.toString()}`);
    const drafts = readdirSync(folder).filter((one) => one.endsWith(".new"));
    assert.equal(drafts.length, 1, name);
    assert.equal(readFileSync(join(folder, drafts[0]!), "utf8"), "KEY=new\n");
    assert.equal(readFileSync(place, "utf8"), "KEY=old\n");
    await replaceFile(place, "KEY=next\n");
    assert.equal(readFileSync(place, "utf8"), "KEY=next\n");
    assert.equal(statSync(place).mode & 0o777, 0o600);
    for (const draft of drafts) rmSync(join(folder, draft));
  }
});

test("a failed replacement leaves the file as it was, and no draft", async () => {
  const place = join(folder, "kept");
  await replaceFile(place, "kept");
  const link = join(folder, "other");
  symlinkSync(place, link);
  await assert.rejects(replaceFile(link, ""), /is not a regular file/);
  rmSync(link);
  await assert.rejects(replaceFile(join(folder, "missing", "file"), ""), { code: "ENOENT" });
  await Promise.all(["a", "b", "c"].map((text) => replaceFile(place, text)));
  assert.match(readFileSync(place, "utf8"), /^[abc]$/);
  assert.deepEqual(
    readdirSync(folder).filter((one) => one.endsWith(".new")),
    [],
  );
});
