// Golden files: files of earlier versions stay readable within the major version.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { crc32c } from "../../src/batch/crc32c.ts";
import { LogError, openLog, openNodeDisk } from "../../src/index.ts";
import { FolderColdStore } from "../simulation/folder-cold-store.ts";
import { batchOf } from "../simulation/fixture.ts";
import { readAll } from "../simulation/read-all.ts";

for (const version of [1, 2, 3]) {
  test(`files of format version ${version} are read: manifest, shared and own segments, journal`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "platform-log-golden-"));
    try {
      const fixture = join(import.meta.dirname, `../fixtures/version-${version}`);
      cpSync(version === 3 ? join(fixture, "log") : fixture, folder, { recursive: true });
      const log = await openLog({ disk: openNodeDisk(folder) });
      const topic = log.topic("golden")!;
      const values = async (index: number) =>
        (await readAll(log, topic.partitions[index]!)).map((record) => String(record.value));
      assert.equal(topic.config.retentionMs, 7);
      assert.equal(topic.id.toString("hex"), (version === 3 ? "04" : "03").repeat(16));
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

function copyVersion3(): {
  folder: string;
  store: FolderColdStore;
  disk: ReturnType<typeof openNodeDisk>;
} {
  const folder = mkdtempSync(join(tmpdir(), "platform-log-golden-"));
  cpSync(join(import.meta.dirname, "../fixtures/version-3"), folder, { recursive: true });
  const store = new FolderColdStore(join(folder, "objects"));
  return { folder, store, disk: openNodeDisk(join(folder, "log")) };
}

test("files of format version 3 are read: segments in objects, and an object to be removed", async () => {
  const { folder, store, disk } = copyVersion3();
  try {
    const cache = openNodeDisk(join(folder, "cache"));
    const cold = { store, cache, cacheBytesMax: 1_000_000, isUploading: true };
    const log = await openLog({ disk, cold });
    const partition = log.topic("far")!.partitions[0]!;
    const values = (await readAll(log, partition)).map(({ value }) => String(value).split(" ")[0]);
    assert.deepEqual(values, ["2", "3", "4", "5", "6", "7"]);
    assert.deepEqual(log.recovery.healed, []);
    assert.equal(log.offloadStatus().waitingRemovals, 1);
    const [first] = log.objects();
    await log.offload();
    const objects: string[] = [];
    for await (const { object } of store.list("")) objects.push(object);
    assert.equal(objects.length, 3);
    assert.ok(objects.includes(first!.object));
    await log.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("files of a newer format version are refused with that version, and stay as they are", async () => {
  for (const kind of ["manifest", "journal"]) {
    const { folder, disk } = copyVersion3();
    try {
      const parent = join(folder, "log", kind);
      const names = readdirSync(parent).filter((name) => name.endsWith(kind));
      for (const name of names) {
        const bytes = readFileSync(join(parent, name));
        for (const at of [0, 512]) {
          bytes[at + 7] = 4;
          bytes.writeUInt32BE(crc32c(bytes.subarray(at, at + 40)), at + 40);
        }
        writeFileSync(join(parent, name), bytes);
      }
      await assert.rejects(openLog({ disk }), (error) => {
        assert.ok(error instanceof LogError);
        assert.equal(error.code, "unsupported-version");
        assert.match(error.message, /format version 4/);
        return true;
      });
      const after = readdirSync(parent).filter((name) => name.endsWith(kind));
      assert.deepEqual(after, names);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
});

test("version 3 begins with the journal, so that programs that know only version 2 refuse the log", () => {
  const folder = join(import.meta.dirname, "../fixtures/version-3/log");
  for (const kind of ["manifest", "journal"]) {
    const [name] = readdirSync(join(folder, kind)).filter((one) => one.endsWith(kind));
    assert.equal(readFileSync(join(folder, kind, name!))[7], 3, kind);
  }
});
