// Files on Node.js: durable writes.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { openNodeDisk } from "../../src/disk/node-disk.ts";

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "platform-log-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

for (const count of [1, 1_024, 3_000]) {
  test(`a durable write of ${count} buffers is complete and in its place`, async (t) => {
    const folder = makeFolder(t);
    const file = await openNodeDisk(folder).open("a", "create");
    await file.write([Buffer.from("head")], 0);
    const pieces = Array.from({ length: count }, (_, at) => Buffer.from(`<${at}>`));
    await file.writeDurably(pieces, 4);
    await file.writeDurably([Buffer.from("HE")], 0);
    assert.equal(
      readFileSync(join(folder, "a"), "latin1"),
      `HEad${Buffer.concat(pieces).toString()}`,
    );
    await file.close();
  });
}

test(
  "durable writes go to the medium before they return",
  { skip: process.platform !== "linux" && "reads /proc" },
  async (t) => {
    const folder = makeFolder(t);
    const path = join(folder, "a");
    const file = await openNodeDisk(folder).open("a", "create");
    await file.writeDurably([Buffer.from("x")], 0);
    const flags = readdirSync("/proc/self/fd").flatMap((fd) => {
      if (!isLink(fd, path)) return [];
      const info = readFileSync(`/proc/self/fdinfo/${fd}`, "utf8");
      return [Number.parseInt(/^flags:\s*(\d+)/m.exec(info)![1]!, 8)];
    });
    const O_DSYNC = 0o10000;
    assert.equal(flags.filter((bits) => (bits & O_DSYNC) !== 0).length, 1);
    await file.close();
    assert.ok(!readdirSync("/proc/self/fd").some((fd) => isLink(fd, path)));
  },
);

function isLink(fd: string, path: string): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === path;
  } catch {
    return false; // closed meanwhile
  }
}
