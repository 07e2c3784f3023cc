// Backups of running services: the archive, its receiver, and the operation between them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import fc from "fast-check";
import {
  BackupKey,
  createBackupRoute,
  fetchBackup,
  receiveBackup,
  restoreBackup,
  verifyBackup,
  type Snapshot,
  type SnapshotFile,
} from "@platform/kernel/backup";
import { PlatformError } from "@platform/kernel/errors";
import { HealthRegistry } from "@platform/kernel/health";
import { createApi, listenHttp } from "@platform/kernel/http";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { systemClock } from "@platform/kernel/time";
import { createTracer } from "@platform/kernel/trace";
import { waitFor } from "@platform/testing/wait";
import { encodeTarHead, padTar, readTar, TAR_END } from "../../src/backup/tar.ts";

const token = "a-token-for-backups-only";
const service = "demo";
const dataFormats = { oldest: 1, newest: 1 };
const contents: Record<string, Buffer> = {
  "a.txt": Buffer.from("hello"),
  empty: Buffer.alloc(0),
  [`deep/${"long-".repeat(18)}/${"name-".repeat(12)}`]: Buffer.alloc(3_000_000, "xyz"),
};

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "platform-stream-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A service whose snapshots are counted. */
async function serve(
  t: TestContext,
  options: { token?: string; takeSnapshot?: () => Promise<Snapshot> } = {},
) {
  const held = { now: 0, released: 0 };
  const stopping = new AbortController();
  const takeSnapshot = async (): Promise<Snapshot> => {
    held.now++;
    const snapshot = await (options.takeSnapshot ?? takeSample)();
    return {
      ...snapshot,
      release: async () => {
        held.now--;
        held.released++;
        await snapshot.release();
      },
    };
  };
  const metrics = new MetricRegistry();
  const clock = systemClock;
  const api = createApi({
    service,
    version: "1.0.0",
    routes: [
      createBackupRoute({
        service,
        version: "1.0.0",
        dataFormat: 1,
        token: "token" in options ? options.token : token,
        takeSnapshot,
        stopping: stopping.signal,
        clock,
        metrics,
      }),
    ],
    guard: () => {
      throw new PlatformError("unauthorized", "Nobody is admitted.");
    },
    health: new HealthRegistry({ service, version: "1.0.0" }),
    metrics,
    logger: createLogger({ service, level: "error", format: "json", write: () => undefined }),
    tracer: createTracer({ ids: createIdSource(), clock }),
    clock,
  });
  const listener = await listenHttp({
    address: { host: "127.0.0.1", port: 0 },
    fetch: (request, bindings) => api.fetch(request, bindings),
  });
  t.after(() => listener.close(0));
  return { url: listener.url, held, stop: () => stopping.abort(), metrics };
}

function takeSample(): Promise<Snapshot> {
  const files = Object.entries(contents).map(([path, bytes]) => fileOf(path, bytes));
  const release = (): Promise<void> => Promise.resolve();
  return Promise.resolve({ mark: { upTo: 7 }, bytes: 3_000_005, files, release });
}

/** More than can be sent. */
function takeEndless(): Promise<Snapshot> {
  const size = 2 ** 40;
  const chunk = Buffer.alloc(1_000_000);
  const file = {
    path: "endless",
    bytes: size,
    async *read() {
      for (let sent = 0; sent < size; sent += chunk.length) yield chunk;
    },
  };
  return Promise.resolve({ mark: 0, bytes: size, files: [file], release: async () => {} });
}

function fileOf(path: string, bytes: Buffer, size = bytes.length): SnapshotFile {
  return {
    path,
    bytes: size,
    async *read() {
      for (let at = 0; at < bytes.length; at += 70_000) yield bytes.subarray(at, at + 70_000);
    },
  };
}

test("a fetched backup is restored with identical files, encrypted or not", async (t) => {
  const base = makeFolder(t);
  const { url, held, metrics } = await serve(t);
  for (const passphrase of [undefined, "correct horse battery"]) {
    const folder = join(base, `backup-${passphrase}`);
    const key = passphrase === undefined ? undefined : await BackupKey.create(passphrase);
    const { stream, bytesTotal } = await fetchBackup({ url, token });
    assert.equal(bytesTotal, 3_000_005);
    const manifest = await receiveBackup({ folder, service, key }, stream);
    assert.deepEqual(manifest.mark, { upTo: 7 });
    const target = join(base, `restored-${passphrase}`);
    await restoreBackup({ folder, target, service, dataFormats, passphrase });
    for (const [path, bytes] of Object.entries(contents)) {
      assert.deepEqual(readFileSync(join(target, path)), bytes, path);
    }
  }
  assert.deepEqual(held, { now: 0, released: 2 });
  const text = await metrics.render();
  assert.match(text, /platform_backups_total\{outcome="complete"\} 2/);
  assert.match(text, /platform_backup_last_success_timestamp_seconds [1-9]/);
});

test("tar unpacks the answer to a backup", async (t) => {
  const base = makeFolder(t);
  const { url } = await serve(t);
  const answer = await fetch(`${url}/api/v1/admin/backup`, {
    headers: { authorization: `Bearer ${token}` },
  });
  assert.equal(answer.headers.get("content-type"), "application/x-tar");
  const archive = join(base, "backup.tar");
  writeFileSync(archive, Buffer.from(await answer.arrayBuffer()));
  execFileSync("tar", ["-xf", archive, "-C", base]);
  rmSync(archive);
  const manifest = await verifyBackup({ folder: base, service, dataFormats });
  assert.equal(manifest.files.length, 3);
});

test("only the backup token gives access, and without one nobody has it", async (t) => {
  const { url, held } = await serve(t);
  const path = `${url}/api/v1/admin/backup`;
  assert.equal((await fetch(path)).status, 401);
  for (const authorization of ["Bearer wrong", `Basic ${token}`, `Bearer ${token}x`, "Bearer"]) {
    const { status } = await fetch(path, { headers: { authorization } });
    assert.equal(status, 401, authorization);
  }
  await assert.rejects(fetchBackup({ url, token: "wrong" }), /backup_token is required/);
  const headers = { authorization: `Bearer ${token}` };
  assert.equal((await fetch(path, { method: "HEAD", headers })).status, 200);
  assert.equal(held.released, 0);
  const disabled = await serve(t, { token: undefined as never });
  await assert.rejects(fetchBackup({ url: disabled.url, token }), /no backup_token is configured/);
});

test("one backup at a time; a client that leaves releases the snapshot", async (t) => {
  const { url, held, metrics } = await serve(t, { takeSnapshot: takeEndless });
  const headers = { authorization: `Bearer ${token}` };
  const first = get(`${url}/api/v1/admin/backup`, { headers });
  first.on("error", () => undefined);
  await once(first, "response");
  await assert.rejects(fetchBackup({ url, token }), /A backup is in progress/);
  first.destroy();
  await waitFor(() => held.now === 0);
  assert.match(await metrics.render(), /platform_backups_total\{outcome="failed"\} 1/);
  const { stream } = await fetchBackup({ url, token });
  await stream[Symbol.asyncIterator]().return?.();
  await waitFor(() => held.released === 2);
});

test("a service that stops, a file that shrinks and a failing snapshot leave no backup", async (t) => {
  const base = makeFolder(t);
  const folder = join(base, "backup");
  const shrunk = await serve(t, {
    takeSnapshot: async () => ({
      ...(await takeSample()),
      files: [fileOf("ok", Buffer.alloc(2_000_000)), fileOf("short", Buffer.alloc(10), 20)],
    }),
  });
  const fetched = await fetchBackup({ url: shrunk.url, token });
  await assert.rejects(receiveBackup({ folder, service }, fetched.stream), /ended|aborted/);
  await waitFor(() => shrunk.held.now === 0);

  const stopped = await serve(t, { takeSnapshot: takeEndless });
  const answer = await fetchBackup({ url: stopped.url, token });
  stopped.stop();
  await assert.rejects(receiveBackup({ folder, service }, answer.stream), /ended|aborted/);

  const failing = await serve(t, {
    takeSnapshot: () => Promise.reject(new PlatformError("unavailable", "The index is damaged.")),
  });
  await assert.rejects(fetchBackup({ url: failing.url, token }), /The index is damaged/);
  await assert.rejects(fetchBackup({ url: failing.url, token }), /The index is damaged/);
  assert.deepEqual(readdirSync(base), []);
});

const refusals: [name: string, archive: () => Buffer[], message: RegExp][] = [
  ["an empty stream", () => [], /ended before it was complete/],
  ["no manifest", () => [...entry("data/a", "x"), TAR_END], /ended before it was complete/],
  ["a cut archive", () => [encodeTarHead("data/a", 9, 0), Buffer.from("x")], /ended before/],
  ["a path outside", () => [...entry("data/../x", "x"), TAR_END], /leaves the backup folder/],
  ["a foreign path", () => [...entry("etc/passwd", "x"), TAR_END], /not part of a backup/],
  ["a file twice", () => [...entry("data/a", "x"), ...entry("data/a", "y")], /sent twice/],
  ["another format", () => [Buffer.alloc(1024, "no tar")], /not a tar archive/],
  ["a link", () => [link("data/a")], /not a regular file/],
  ["a damaged manifest", () => [...entry("backup.json", "{}")], /not the manifest of a backup/],
];
for (const [name, archive, message] of refusals) {
  test(`a stream with ${name} is refused and leaves nothing`, async (t) => {
    const base = makeFolder(t);
    const receiving = receiveBackup({ folder: join(base, "backup"), service }, toStream(archive()));
    await assert.rejects(receiving, { name: "BackupError", message });
    assert.deepEqual(readdirSync(base), []);
    assert.equal(existsSync(join(base, "..", "x")), false);
  });
}

test("archives of any files in any pieces are read as they were written", async () => {
  const name = fc.stringMatching(/^[a-zé]{1,40}(?:\/[a-z]{1,40}){0,3}$/);
  const file = fc.record({ path: name, bytes: fc.uint8Array({ maxLength: 2_000 }) });
  const property = fc.asyncProperty(
    fc.array(file, { maxLength: 5 }),
    fc.integer({ min: 1, max: 3_000 }),
    async (files, cut) => {
      const parts = files.flatMap(({ path, bytes }) => [
        encodeTarHead(path, bytes.length, 1_000),
        Buffer.from(bytes),
        padTar(bytes.length),
      ]);
      const archive = Buffer.concat([...parts, TAR_END]);
      const found: { path: string; bytes: Uint8Array }[] = [];
      for await (const { path, contents } of readTar(cutInto(archive, cut))) {
        const chunks: Buffer[] = [];
        for await (const chunk of contents) chunks.push(chunk);
        found.push({ path, bytes: new Uint8Array(Buffer.concat(chunks)) });
      }
      const expected = files.map(({ path, bytes }) => ({ path, bytes }));
      assert.deepEqual(found, expected);
    },
  );
  await fc.assert(property, { numRuns: 200 });
});

test("sizes from 8 GiB are written in the binary form", async () => {
  const size = 20 * 1024 ** 3;
  const head = encodeTarHead("data/large", size, 0);
  for await (const { bytes } of readTar(toStream([head]))) {
    assert.equal(bytes, size);
    break;
  }
});

function entry(path: string, text: string): Buffer[] {
  const bytes = Buffer.from(text);
  return [encodeTarHead(path, bytes.length, 0), bytes, padTar(bytes.length)];
}

function link(path: string): Buffer {
  const head = encodeTarHead(path, 0, 0);
  head.write("2", 156);
  const sum = Number.parseInt(head.toString("latin1", 148, 154), 8) + 2;
  head.write(sum.toString(8).padStart(6, "0"), 148);
  return head;
}

async function* toStream(parts: Buffer[]): AsyncGenerator<Buffer> {
  yield* parts;
}

async function* cutInto(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
