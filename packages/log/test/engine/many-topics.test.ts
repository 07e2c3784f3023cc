// Memory and files of a hundred thousand topics.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openLog, openNodeDisk } from "../../src/index.ts";
import { batchOf } from "../simulation/fixture.ts";

/** Number of topics; soak tests set 100 000. */
const TOPICS = Number(process.env["PLATFORM_LOG_TOPICS"] ?? 10_000);
/** Maximum heap bytes of one topic with one partition and one record. */
const BYTES_PER_TOPIC_MAX = 2_000;

function heapBytes(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test(`${TOPICS} topics share segments and take at most ${BYTES_PER_TOPIC_MAX} bytes each`, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "platform-log-topics-"));
  try {
    let log = await openLog({ disk: openNodeDisk(folder) });
    const before = heapBytes();
    for (let first = 0; first < TOPICS; first += 1_000) {
      const created = await Promise.all(
        Array.from({ length: Math.min(1_000, TOPICS - first) }, (_, at) =>
          log.createTopic(`topic-${first + at}`),
        ),
      );
      await Promise.all(
        created.map((topic) =>
          log.append([{ partition: topic.partitions[0]!, batch: batchOf("value") }]),
        ),
      );
    }
    await log.checkpoint();
    const each = (heapBytes() - before) / TOPICS;
    const { openFiles } = log.stats();
    await log.close();
    const started = performance.now();
    log = await openLog({ disk: openNodeDisk(folder) });
    const openMs = Math.round(performance.now() - started);
    t.diagnostic(`${Math.round(each)} bytes of memory a topic, opened again in ${openMs} ms`);
    assert.equal([...log.topics()].length, TOPICS);
    const last = log.topic(`topic-${TOPICS - 1}`)!.partitions[0]!;
    assert.equal((await log.read(last, 0, 1_000)).nextOffset, 1);
    await log.close();
    // Without a forced collection the heap includes garbage, so the figure is not checked.
    if (globalThis.gc !== undefined) assert.ok(each < BYTES_PER_TOPIC_MAX, `${each}`);
    assert.ok(openFiles < 10);
    assert.equal(readdirSync(join(folder, "topics")).length, 0);
    assert.ok(readdirSync(join(folder, "shared")).length < 5);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
