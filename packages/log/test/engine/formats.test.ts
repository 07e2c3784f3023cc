// Golden files: files of earlier versions stay readable within the major version.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openLog, openNodeDisk } from "../../src/index.ts";
import { batchOf } from "../simulation/fixture.ts";
import { readAll } from "../simulation/read-all.ts";

for (const version of [1, 2]) {
  test(`files of format version ${version} are read: manifest, shared and own segments, journal`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "platform-log-golden-"));
    try {
      cpSync(join(import.meta.dirname, `../fixtures/version-${version}`), folder, {
        recursive: true,
      });
      const log = await openLog({ disk: openNodeDisk(folder) });
      const topic = log.topic("golden")!;
      const values = async (index: number) =>
        (await readAll(log, topic.partitions[index]!)).map((record) => String(record.value));
      assert.equal(topic.config.retentionMs, 7);
      assert.equal(topic.id.toString("hex"), "03".repeat(16));
      assert.deepEqual(await values(0), ["small", "more"]);
      assert.deepEqual(await values(1), ["l".repeat(600), "m".repeat(600)]);
      assert.deepEqual(await values(2), ["two"]);
      assert.equal(topic.partitions[2]!.logStart, 1);
      assert.equal(log.recovery.dirtyPartitions, 3);
      assert.deepEqual(log.recovery.quarantined, []);
      assert.deepEqual([log.recovery.healed, log.recovery.setAside], [[], []]);
      const partition = topic.partitions[1]!;
      const sequence = { producerId: 5, producerEpoch: 0, baseSequence: 0 };
      const [result] = await log.append([{ partition, batch: batchOf("m", 3, sequence) }]);
      assert.deepEqual(result, { baseOffset: 1, lastOffset: 1, duplicate: true });
      await log.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
