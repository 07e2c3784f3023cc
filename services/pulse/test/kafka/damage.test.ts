// A closed segment is damaged while the broker runs: consumers get an error for it, and everything else.
import assert from "node:assert/strict";
import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import { fetch as fetchMessage } from "../../src/kafka/protocol/messages/index.ts";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { KafkaClient } from "./client.ts";

const COUNT = 30;

async function fetchAt(client: KafkaClient, offset: number) {
  const answer = await client.ask(fetchMessage, 5, {
    replicaId: -1,
    maxWaitMs: 0,
    minBytes: 0,
    maxBytes: 1_000_000,
    isolationLevel: 0,
    topics: [
      { name: "t", partitions: [{ partition: 0, fetchOffset: offset, partitionMaxBytes: 1 }] },
    ],
  });
  return answer.topics[0]!.partitions[0]!;
}

/** Flips a bit of every record in the middle of the topic's segments. */
function damageMiddle(pulse: PulseHere): void {
  const files = globSync("**/topics/**/*.log", { cwd: pulse.folder }).sort();
  const path = join(pulse.folder, files[Math.floor(files.length / 2)]!);
  const bytes = readFileSync(path);
  for (let at = 2_000; at < bytes.length; at += 4_000) bytes[at] = bytes[at]! ^ 1;
  writeFileSync(path, bytes);
}

/** A broker with a topic of several closed segments, none of which was read since its start. */
async function startWithSegments(t: TestContext): Promise<PulseHere> {
  const pulse = await startPulseHere(t);
  const config = { segment_bytes: 100_000 };
  assert.equal((await pulse.post("/api/v1/topics", { name: "t", config })).status, 201);
  for (let at = 0; at < COUNT; at++) {
    const { status } = await pulse.publish({ topic: "t", payload: `${at} `.padEnd(30_000, "x") });
    assert.equal(status, 200);
    // A stop writes a checkpoint, after which the next segment can begin.
    if (at % 10 === 9) {
      await pulse.stop();
      await pulse.start();
    }
  }
  return pulse;
}

test("Kafka consumers get KAFKA_STORAGE_ERROR inside the damage and records around it", async (t) => {
  const pulse = await startWithSegments(t);
  damageMiddle(pulse);
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  const codes: number[] = [];
  for (let offset = 0; offset < COUNT; offset++)
    codes.push((await fetchAt(client, offset)).errorCode);
  const damaged = codes.flatMap((code, offset) => (code === ERROR_CODES.none ? [] : [offset]));
  assert.ok(damaged.length > 0 && damaged.length < COUNT / 2, `damaged: ${damaged.join()}`);
  for (const offset of damaged) assert.equal(codes[offset], ERROR_CODES.kafkaStorageError);

  const tail = await pulse.get(`/api/v1/tail?topic=t&n=${COUNT}`);
  assert.equal(tail.status, 200);
  assert.equal(tail.body.count, COUNT - damaged.length);
  const reader = await EventReader.open(`${pulse.url}/api/v1/subscribe/t?from=earliest`);
  await reader.wait(COUNT - damaged.length);
  reader.close();

  const ready = await pulse.get("/readyz");
  assert.equal(ready.status, 200);
  assert.match(ready.body.warnings.log, /damaged ranges? of stored messages cannot be read/);
  const metrics = String((await pulse.get("/metrics")).body);
  assert.match(metrics, /^platform_pulse_log_damaged_ranges [1-9]/m);
  assert.match(metrics, /^platform_pulse_log_quarantine_files [1-9]/m);
});

test("Kafka consumers get OFFSET_OUT_OF_RANGE before the new start if the first segment is missing", async (t) => {
  const pulse = await startWithSegments(t);
  const [first] = globSync("**/topics/**/*.log", { cwd: pulse.folder }).sort();
  rmSync(join(pulse.folder, first!));
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  const deadline = Date.now() + 30_000;
  for (;;) {
    const { errorCode } = await fetchAt(client, 0);
    if (errorCode === ERROR_CODES.offsetOutOfRange) break;
    assert.equal(errorCode, ERROR_CODES.kafkaStorageError);
    assert.ok(Date.now() < deadline, "the start of the partition moves after the damage");
    await sleep(50);
  }
  const { logStartOffset } = await fetchAt(client, COUNT - 1);
  assert.ok(logStartOffset > 0 && logStartOffset < COUNT / 2, `${logStartOffset}`);
  for (let offset = logStartOffset; offset < COUNT; offset++)
    assert.equal((await fetchAt(client, offset)).errorCode, ERROR_CODES.none, `${offset}`);
  const tail = await pulse.get(`/api/v1/tail?topic=t&n=${COUNT}`);
  assert.deepEqual([tail.status, tail.body.count], [200, COUNT - logStartOffset]);
});
