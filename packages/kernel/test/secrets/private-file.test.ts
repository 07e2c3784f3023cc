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
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, mock, test } from "node:test";
import { createPrivateDraft, replacePrivateFile } from "../../src/secrets/index.ts";

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
    replacePrivateFile(path, "one");
  } finally {
    mock.restoreAll();
    syncBuiltinESMExports();
  }
  assert.deepEqual(calls, ["sync file", "rename", "sync folder"]);
  assert.equal(readFileSync(path, "utf8"), "one");
});

test("a replaced file is private, whatever the old one was", () => {
  replacePrivateFile(path, "one");
  chmodSync(path, 0o644);
  replacePrivateFile(path, "two");
  assert.equal(readFileSync(path, "utf8"), "two");
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("a discarded draft leaves the file as it was, and no other file", () => {
  replacePrivateFile(path, "kept");
  createPrivateDraft(path).discard();
  assert.equal(readFileSync(path, "utf8"), "kept");
  assert.deepEqual(readdirSync(folder), ["secret"]);
});

test("folders and links are not replaced", () => {
  const link = join(folder, "link");
  symlinkSync(path, link);
  for (const place of [folder, link])
    assert.throws(() => createPrivateDraft(place), /is not a regular file/);
  rmSync(link);
  assert.throws(() => replacePrivateFile(join(folder, "missing", "file"), ""), { code: "ENOENT" });
});
