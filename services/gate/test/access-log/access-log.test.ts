// The access log: lines that cannot be forged, written soon, bounded, rotated without loss.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import {
  AccessLineFormat,
  quoteJson,
  type AccessRecord,
} from "../../src/access-log/access-line.ts";
import { AccessLogRotation } from "../../src/access-log/access-log-rotation.ts";
import {
  ACCESS_LOG_WRITER_DEFAULT,
  AccessLogWriter,
} from "../../src/access-log/access-log-writer.ts";

/** Far beyond what it takes: a busy machine must not look like a defect. */
const WAIT_MS = 30_000;

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "gate-access-"));
  path = join(folder, "access.jsonl");
});
afterEach(() => rmSync(folder, { recursive: true }));

function openWriter(change: Partial<typeof ACCESS_LOG_WRITER_DEFAULT> = {}): {
  writer: AccessLogWriter;
  errors: Error[];
} {
  const errors: Error[] = [];
  const writer = new AccessLogWriter({
    path,
    ...ACCESS_LOG_WRITER_DEFAULT,
    ...change,
    onError: (error) => errors.push(error),
  });
  return { writer, errors };
}

const RECORD: AccessRecord = {
  startedAtMs: 1_700_000_000_007.6,
  method: "GET",
  path: "/a/b",
  status: 200,
  latencyMs: 12.4,
  clientAddress: "192.0.2.1",
  upstreamJson: '"http://up:80"',
  code: "",
  routeJson: '"/a"',
  requestId: "r1",
  traceId: "0af7651916cd43dd8448eb211c80319c",
  attempts: 1,
  upstreamMs: 11.26,
};

test("a line has the fields of the specification and our own", () => {
  assert.deepEqual(JSON.parse(new AccessLineFormat().format(RECORD)), {
    timestamp: "2023-11-14T22:13:20.007Z",
    method: "GET",
    path: "/a/b",
    status: 200,
    latency_ms: 12,
    client_ip: "192.0.2.1",
    upstream: "http://up:80",
    code: "",
    route: "/a",
    request_id: "r1",
    trace_id: "0af7651916cd43dd8448eb211c80319c",
    attempts: 1,
    upstream_ms: 11.3,
  });
});

test("any client input stays one line of JSON with that value", () => {
  const format = new AccessLineFormat();
  const text = fc.oneof(fc.string({ unit: "binary" }), fc.string());
  fc.assert(
    fc.property(text, text, fc.nat(2 ** 41), (method, requestId, startedAtMs) => {
      const line = format.format({ ...RECORD, method, requestId, path: requestId, startedAtMs });
      assert.match(line, /^[ -~]+\n$/);
      const read = JSON.parse(line);
      assert.deepEqual([read.method, read.request_id, read.path], [method, requestId, requestId]);
      assert.equal(read.timestamp, new Date(startedAtMs).toISOString());
    }),
  );
  assert.equal(quoteJson('a"\\\n\u2028é\u007f'), String.raw`"a\"\\\n\u2028\u00e9\u007f"`);
});

test("lines of all writers are flushed soon and as whole lines", async () => {
  assert.ok(ACCESS_LOG_WRITER_DEFAULT.flushMs < 200);
  const { writer } = openWriter();
  const { writer: other } = openWriter();
  for (let line = 0; line < 500; line++) {
    writer.append(`a${line}\n`);
    other.append(`b${line}\n`);
  }
  let lines: string[] = [];
  for (const deadline = performance.now() + WAIT_MS; lines.length < 1_001;) {
    assert.ok(performance.now() < deadline, `${lines.length} lines`);
    await delay(10);
    lines = readFileSync(path, "utf8").split("\n");
  }
  assert.equal(lines.length, 1_001);
  assert.deepEqual(
    lines.filter((line) => line.startsWith("a")),
    Array.from({ length: 500 }, (_, at) => `a${at}`),
  );
  await Promise.all([writer.close(), other.close()]);
});

test("lines beyond the buffer limit are dropped and counted, accepted ones are written", async () => {
  const { writer } = openWriter({ pendingBytesMax: 100 } as object);
  for (let line = 0; line < 30; line++) writer.append("123456789\n");
  assert.deepEqual([writer.lines, writer.dropped], [10, 20]);
  await writer.close();
  assert.equal(readFileSync(path, "utf8").length, 100);
});

test("after a rename and reopen the writer continues in the new file without loss", async () => {
  const { writer } = openWriter();
  writer.append("one\n");
  await writer.settle();
  renameSync(path, `${path}.1`);
  writer.append("two\n");
  await writer.reopen();
  writer.append("three\n");
  await writer.close();
  assert.equal(readFileSync(`${path}.1`, "utf8"), "one\ntwo\n");
  assert.equal(readFileSync(path, "utf8"), "three\n");
});

test("a missing folder is reported once and the old file is kept", async () => {
  const { writer, errors } = openWriter();
  rmSync(folder, { recursive: true });
  await writer.reopen();
  await writer.reopen();
  assert.deepEqual(
    errors.map((error) => (error as NodeJS.ErrnoException).code),
    ["ENOENT"],
  );
  writer.append("still\n");
  await writer.close();
  folder = mkdtempSync(join(tmpdir(), "gate-access-"));
});

test("a full file is renamed, the oldest file is removed", async () => {
  let rotations = 0;
  const rotation = new AccessLogRotation({
    listSpecs: () => [{ path, fileBytesMax: 10, filesMax: 2 }],
    intervalMs: 60_000,
    onRotated: () => rotations++,
    onError: (error) => assert.fail(error),
  });
  await rotation.check();
  for (const text of ["first file", "short", "second file", "third file"]) {
    writeFileSync(path, text);
    await rotation.check();
  }
  rotation.close();
  assert.equal(rotations, 3);
  assert.equal(readFileSync(`${path}.1`, "utf8"), "third file");
  assert.equal(readFileSync(`${path}.2`, "utf8"), "second file");
  assert.throws(() => readFileSync(`${path}.3`), { code: "ENOENT" });
});
