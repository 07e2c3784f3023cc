import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { open as openHandle, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { OpenFiles } from "@platform/kernel/files";
import { waitFor } from "@platform/testing/wait";

const folder = mkdtempSync(join(tmpdir(), "open-files-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function makeFile(name: string): string {
  const path = join(folder, name);
  writeFileSync(path, name);
  return path;
}

// The cache of open files, with counted opens and closes of real files.
function createSet(filesMax: number) {
  const counts = { opened: 0, closed: 0 };
  const files = new OpenFiles<FileHandle>({
    filesMax,
    open: async (path) => {
      const handle = await openHandle(path, "r");
      counts.opened += 1;
      return handle;
    },
    close: async (handle) => {
      await handle.close();
      counts.closed += 1;
    },
  });
  return { files, counts };
}

async function readText(file: FileHandle): Promise<string> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(64), 0, 64, 0);
  return buffer.toString("utf8", 0, bytesRead);
}

async function useBriefly(files: OpenFiles<FileHandle>, path: string): Promise<void> {
  (await files.use(path)).release();
}

test("a file stays open and is shared, also while it is being opened", async () => {
  const { files, counts } = createSet(4);
  const path = makeFile("one");
  const leases = await Promise.all([files.use(path), files.use(path), files.use(path)]);
  for (const lease of leases) assert.equal(await readText(lease.file), "one");
  for (const lease of leases) lease.release();
  await useBriefly(files, path);
  assert.deepEqual(counts, { opened: 1, closed: 0 });
  assert.equal(files.count, 1);
  await files.close();
  assert.deepEqual(counts, { opened: 1, closed: 1 });
});

test("beyond the limit the least recently used file is closed", async () => {
  const { files, counts } = createSet(2);
  const [a, b, c] = [makeFile("a"), makeFile("b"), makeFile("c")];
  await useBriefly(files, a);
  await useBriefly(files, b);
  await useBriefly(files, a);
  await useBriefly(files, c);
  assert.equal(files.count, 2);
  await waitFor(() => counts.closed === 1);
  await useBriefly(files, a);
  await useBriefly(files, c);
  assert.equal(counts.opened, 3, "b was closed, not a or c");
  await useBriefly(files, b);
  assert.equal(counts.opened, 4);
  await files.close();
});

test("files in use are never closed; the limit applies again on release", async () => {
  const { files, counts } = createSet(1);
  const paths = ["d", "e", "f", "g"].map(makeFile);
  const leases = await Promise.all(paths.map((path) => files.use(path)));
  assert.equal(files.count, 4);
  assert.equal(counts.closed, 0);
  assert.deepEqual(await Promise.all(leases.map(({ file }) => readText(file))), [
    "d",
    "e",
    "f",
    "g",
  ]);
  for (const lease of leases) lease.release();
  assert.equal(files.count, 1);
  await waitFor(() => counts.closed === 3);
  await files.close();
});

test("a forgotten file is reopened, and the old one closed when it is released", async () => {
  const { files, counts } = createSet(4);
  const path = makeFile("before");
  const [first, second] = [await files.use(path), await files.use(path)];
  rmSync(path);
  files.forget(path);
  writeFileSync(path, "after");
  const third = await files.use(path);
  assert.equal(await readText(first.file), "before");
  assert.equal(await readText(third.file), "after");
  first.release();
  assert.equal(await readText(second.file), "before");
  assert.equal(counts.closed, 0);
  second.release();
  await waitFor(() => counts.closed === 1);
  third.release();
  await files.close();
  assert.deepEqual(counts, { opened: 2, closed: 2 });
});

test("an open error is reported to all waiting calls, and the next call tries again", async () => {
  const { files } = createSet(4);
  const path = join(folder, "late");
  const refused = await Promise.allSettled([files.use(path), files.use(path)]);
  assert.deepEqual(
    refused.map((result) => result.status),
    ["rejected", "rejected"],
  );
  assert.equal(files.count, 0);
  makeFile("late");
  await useBriefly(files, path);
  await files.close();
});

test("a call can override how a file is opened", async () => {
  const { files } = createSet(4);
  const path = join(folder, "made");
  const lease = await files.use(path, (made) => openHandle(made, "wx+"));
  await lease.file.write("hello");
  assert.equal(await readText(lease.file), "hello");
  lease.release();
  await files.close();
});

test("closing waits for idle files, and closes others on release", async () => {
  const { files, counts } = createSet(4);
  const idle = makeFile("idle");
  await useBriefly(files, idle);
  const lease = await files.use(makeFile("busy"));
  await files.close();
  assert.equal(counts.closed, 1);
  assert.equal(files.count, 0);
  assert.equal(await readText(lease.file), "busy");
  lease.release();
  await waitFor(() => counts.closed === 2);
});

test("errors of closing are ignored", async () => {
  const files = new OpenFiles({
    filesMax: 1,
    open: (path) => Promise.resolve(path),
    close: () => Promise.reject(new Error("EIO")),
  });
  const lease = await files.use("broken");
  lease.release();
  await files.close();
  assert.equal(files.count, 0);
});
