// Restart delays, line splitting and the combined log.
import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { formatReadable } from "../../src/control/log-line.ts";
import { createLogStream } from "../../src/supervisor/log-stream.ts";
import { computeBackoffMs } from "../../src/supervisor/backoff.ts";
import { readLines } from "../../src/supervisor/line-splitter.ts";

test("the restart delay doubles from 0.5 s to 30 s", () => {
  const waits = [1, 2, 3, 6, 7, 8, 1000].map(computeBackoffMs);
  assert.deepEqual(waits, [500, 1000, 2000, 16_000, 30_000, 30_000, 30_000]);
});

test("output is split into lines across chunks and inside characters, and at a maximum length", async () => {
  const stream = new PassThrough();
  const lines: string[] = [];
  readLines(stream, (line) => void lines.push(line));
  const bytes = Buffer.from(`one\r\ntwö\n${"x".repeat(65_536 + 10)}\nend`);
  for (let at = 0; at < 9; at += 1) stream.write(bytes.subarray(at, at + 1));
  stream.end(bytes.subarray(9));
  await new Promise((resolve) => stream.on("close", resolve));
  assert.deepEqual(
    lines.map((line) => (line.length > 9 ? line.length : line)),
    ["one", "twö", 65_546, "end"],
  );
  const endless = new PassThrough();
  const parts: number[] = [];
  readLines(endless, (line) => void parts.push(line.length));
  for (let i = 0; i < 20; i += 1) endless.write("y".repeat(10_000));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(parts, [65_536, 65_536, 65_536]);
});

const event = (level: string, msg: string): string =>
  JSON.stringify({
    level,
    msg,
    trace_id: "",
    span_id: "",
    service: "gate",
    duration_ms: null,
    status: null,
    timestamp: "2030-01-02T03:04:05.006Z",
  });

test("the readable log shows product names and only warnings of the startup, and wraps lines that are not events", () => {
  const written: string[] = [];
  const log = createLogStream({
    json: false,
    format: (line) => formatReadable(line, false),
    level: "info",
    write: (text) => void written.push(text),
    record: () => undefined,
  });
  log.add("gate", event("info", "ready"));
  log.add("gate", event("warn", "careful"));
  log.add("gate", "Segmentation fault");
  log.add("gate", "  ");
  assert.equal(written.length, 0);
  log.release("warnings");
  log.add("gate", event("info", "later"));
  assert.deepEqual(
    written.map((line) => line.slice(13).trimEnd().replace(/ +/g, " ")),
    ["warn gateway careful", "warn gateway Segmentation fault", "info gateway later"],
  );
});

test("the JSON log passes events through unchanged and wraps other lines", () => {
  const written: string[] = [];
  const log = createLogStream({
    json: true,
    format: (line) => formatReadable(line, false),
    level: "info",
    write: (text) => void written.push(text),
    record: () => undefined,
  });
  log.add("gate", event("info", "ready"));
  log.add("gate", '{"half": ');
  log.logger.info("own");
  assert.equal(written[0], `${event("info", "ready")}\n`);
  assert.deepEqual(
    written.slice(1).map((line) => {
      const { msg, service } = JSON.parse(line);
      return [msg, service];
    }),
    [
      ['{"half": ', "gate"],
      ["own", "platform"],
    ],
  );
});

test("at most 1000 lines of the startup are held back, and all are recorded", () => {
  let written = 0;
  let recorded = 0;
  const log = createLogStream({
    json: false,
    format: (line) => formatReadable(line, false),
    level: "info",
    write: () => void (written += 1),
    record: () => void (recorded += 1),
  });
  for (let i = 0; i < 5000; i += 1) log.add("gate", event("error", "again"));
  log.release("all");
  assert.equal(written, 1000);
  assert.equal(recorded, 5000);
});
