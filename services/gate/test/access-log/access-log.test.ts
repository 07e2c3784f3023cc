// The access log: lines that cannot be forged, written soon, bounded, rotated without loss.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
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

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const RECORD: AccessRecord = {
  startedAtMs: 1_700_000_000_007.6,
  method: "GET",
  path: "/a/b",
  status: 200,
  latencyMs: 12.4,
  isStream: false,
  clientAddress: "192.0.2.1",
  upstreamJson: '"http://up:80"',
  code: "",
  routeJson: '"/a"',
  ids: identify("r1"),
  attempts: 1,
  upstreamMs: 11.26,
  guests: null,
  aiJson: "",
};

function identify(requestId: string, isNamedByTrace = false): AccessRecord["ids"] {
  return {
    requestId,
    isNamedByTrace,
    copyTraceId: (target, at) => void Buffer.from(TRACE_ID).copy(target, at),
  };
}

function formatLine(format: AccessLineFormat, record: AccessRecord): string {
  format.format(record);
  return format.bytes.toString("latin1", 0, format.length);
}

test("a line has the fields of the specification and our own", () => {
  assert.deepEqual(JSON.parse(formatLine(new AccessLineFormat(), RECORD)), {
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
    trace_id: TRACE_ID,
    attempts: 1,
    upstream_ms: 11.3,
  });
});

test("a stream is marked, as its latency is the time for which it was open", () => {
  const line = formatLine(new AccessLineFormat(), { ...RECORD, isStream: true });
  assert.equal(JSON.parse(line).stream, true);
});

test("any client input stays one line of JSON with that value", () => {
  const format = new AccessLineFormat();
  const text = fc.oneof(fc.string({ unit: "binary" }), fc.string());
  fc.assert(
    fc.property(text, text, fc.nat(2 ** 41), (method, requestId, startedAtMs) => {
      const ids = identify(requestId);
      const line = formatLine(format, { ...RECORD, method, ids, path: requestId, startedAtMs });
      assert.match(line, /^[ -~]+\n$/);
      const read = JSON.parse(line);
      assert.deepEqual([read.method, read.request_id, read.path], [method, requestId, requestId]);
      assert.equal(read.timestamp, new Date(startedAtMs).toISOString());
    }),
  );
  assert.equal(quoteJson('a"\\\n\u2028é\u007f'), String.raw`"a\"\\\n\u2028\u00e9\u007f"`);
});

test("each line has its own target and outcome, whatever the lines before it had", () => {
  const record = fc.record({
    upstreamJson: fc.constantFrom('"http://a:80"', '"http://b:8080"', '""'),
    code: fc.constantFrom("", "circuit_open"),
    routeJson: fc.constantFrom('"/a"', '"/longer"'),
  });
  fc.assert(
    fc.property(fc.array(record, { minLength: 1, maxLength: 20 }), (parts) => {
      const format = new AccessLineFormat();
      for (const part of parts) {
        const line = { ...RECORD, ...part };
        assert.equal(formatLine(format, line), formatLine(new AccessLineFormat(), line));
      }
    }),
  );
});

test("numbers are those of JSON, and an ID that is the trace's is written as such", () => {
  const format = new AccessLineFormat();
  const ids = identify("unused", true);
  const numbers = fc.tuple(
    fc.double({ min: 0, max: 1e7, noNaN: true }),
    fc.double({ min: 0, max: 1e7, noNaN: true }),
    fc.integer({ min: 100, max: 599 }),
    fc.nat(16),
  );
  fc.assert(
    fc.property(numbers, ([latencyMs, upstreamMs, status, attempts]) => {
      const record = { ...RECORD, ids, latencyMs, upstreamMs, status, attempts };
      const read = JSON.parse(formatLine(format, record));
      assert.deepEqual(
        [read.latency_ms, read.upstream_ms, read.status, read.attempts],
        [Math.round(latencyMs), Math.round(upstreamMs * 10) / 10, status, attempts],
      );
      assert.deepEqual([read.request_id, read.trace_id], [TRACE_ID, TRACE_ID]);
    }),
  );
  assert.equal(JSON.parse(formatLine(format, { ...RECORD, upstreamMs: -1 })).upstream_ms, null);
});

test("a long path is logged whole, and the next line does not keep its memory", () => {
  const format = new AccessLineFormat();
  const path = `/${"\u0000".repeat(65_536)}`;
  assert.equal(JSON.parse(formatLine(format, { ...RECORD, path })).path, path);
  assert.equal(JSON.parse(formatLine(format, RECORD)).path, RECORD.path);
  assert.ok(format.bytes.length < 10_000);
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

test("lines in chunks, longer than a chunk and during a write are all written once, in order", async () => {
  const { writer } = openWriter({ flushBytes: 64, flushMs: 5 } as object);
  const expected: string[] = [];
  for (let line = 0; line < 400; line++) {
    const text = `${line} ${"x".repeat(line % 97)}\n`;
    expected.push(text);
    if (line % 2 === 0) writer.append(text);
    else writer.appendBytes(Buffer.from(`${text}rest`), text.length);
    if (line % 50 === 49) await delay(1);
  }
  await writer.settle();
  assert.equal(readFileSync(path, "latin1"), expected.join(""));
  assert.deepEqual([writer.lines, writer.dropped], [400, 0]);
  await writer.close();
});

test("a file that cannot be written costs the lines, which are counted, and is reported once", async () => {
  const errors: Error[] = [];
  const options = { ...ACCESS_LOG_WRITER_DEFAULT, flushBytes: 20, path: "/dev/full" };
  const writer = new AccessLogWriter({ ...options, onError: (error) => errors.push(error) });
  for (let line = 0; line < 5; line++) writer.append("123456789\n");
  await writer.settle();
  assert.deepEqual([writer.lines, writer.dropped, errors.length], [5, 5, 1]);
  writer.append("123456789\n");
  await writer.close();
  assert.deepEqual([writer.dropped, errors.length], [6, 1]);
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

test("a line that a crash has torn costs no other line", async () => {
  writeFileSync(path, '{"whole":1}\n{"torn":');
  const { writer, errors } = openWriter();
  writer.append('{"next":1}\n');
  await writer.close();
  assert.equal(readFileSync(path, "utf8"), '{"whole":1}\n{"torn":\n{"next":1}\n');
  assert.deepEqual(errors, []);
});

test(
  "a write that the disk takes in part loses the lines that are not written, and no later one",
  { skip: process.platform === "linux" ? false : "prlimit is there on Linux only" },
  async () => {
    const limit = (bytes: string): void =>
      void execFileSync("prlimit", [`--pid=${process.pid}`, `--fsize=${bytes}:unlimited`]);
    const { writer, errors } = openWriter();
    try {
      limit("25");
      for (let line = 1; line <= 5; line++) writer.append(`{"line":${line}}\n`);
      await writer.settle();
    } finally {
      limit("unlimited");
    }
    assert.equal(readFileSync(path, "utf8"), '{"line":1}\n{"line":2}\n{"l');
    assert.deepEqual([writer.lines, writer.dropped, errors.length], [5, 3, 1]);
    writer.append('{"line":6}\n');
    await writer.close();
    assert.equal(readFileSync(path, "utf8"), '{"line":1}\n{"line":2}\n{"l\n{"line":6}\n');
  },
);
