// A process to be killed: appends to an offloaded topic, uploads, drops and removes all the time, and prints the
// acknowledged entries.
import { join } from "node:path";
import { encodeBatch } from "../../src/batch/index.ts";
import { openLog, openNodeDisk } from "../../src/index.ts";
import { FolderColdStore } from "../simulation/folder-cold-store.ts";

const [folder, start] = process.argv.slice(2) as [string, string];
const log = await openLog({
  disk: openNodeDisk(join(folder, "log")),
  checkpointBytes: 400_000,
  journalFileBytes: 300_000,
  inPlaceBytesMin: 5_000,
  cold: {
    store: new FolderColdStore(join(folder, "objects")),
    cache: openNodeDisk(join(folder, "cache")),
    cacheBytesMax: 10_000_000,
    isUploading: true,
  },
});
const config = {
  segmentBytes: 60_000,
  offload: true,
  localRetentionBytes: 100_000,
  retentionBytes: 2_000_000,
};
const topic = await log.createTopic("t", { partitions: 3, config, orGet: true });
let number = Number(start);

async function appendOn(lane: number): Promise<void> {
  const partition = topic.partitions[lane % 3]!;
  for (;;) {
    const entry = number++;
    const value = Buffer.from(`${entry} `.padEnd(entry % 4 === 0 ? 20_000 : 300, "x"));
    const batch = encodeBatch([{ key: null, value, headers: [], timestamp: entry }]);
    const [result] = await log.append([{ partition, batch, verified: true }]);
    process.stdout.write(`${JSON.stringify([entry, partition.index, result!.baseOffset])}\n`);
  }
}

async function moveAround(): Promise<void> {
  for (;;) {
    await log.offload();
    log.applyRetention();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

await Promise.all([...Array.from({ length: 6 }, (_, lane) => appendOn(lane)), moveAround()]);
