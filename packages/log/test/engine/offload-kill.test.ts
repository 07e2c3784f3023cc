// Repeated kill -9 of a real writer during uploads, checkpoints and removals, on the same folder and store.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openLog, openNodeDisk } from "../../src/index.ts";
import { FolderColdStore } from "../simulation/folder-cold-store.ts";
import { readAll } from "../simulation/read-all.ts";

/** Number of rounds; soak tests set more. */
const ROUNDS = Number(process.env["PLATFORM_KILL_ROUNDS"] ?? 5);

type Acknowledged = [entry: number, partition: number, offset: number];

async function runWriter(folder: string, start: number, aliveMs: number): Promise<Acknowledged[]> {
  const writer = join(import.meta.dirname, "offload-kill-writer.ts");
  const child = spawn(process.execPath, [writer, folder, String(start)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  const timer = Promise.withResolvers<void>();
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (chunk: string) => {
    if (text === "") setTimeout(timer.resolve, aliveMs);
    text += chunk;
  });
  await timer.promise;
  child.kill("SIGKILL");
  await once(child, "close");
  const lines = text.split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Acknowledged);
}

test(`nothing is lost and no object is left over ${ROUNDS} rounds of kill -9 during offload`, async () => {
  const folder = mkdtempSync(join(tmpdir(), "platform-log-offload-kill-"));
  mkdirSync(join(folder, "objects"));
  const acknowledged: Acknowledged[] = [];
  const starts = [0, 0, 0];
  let uploaded = 0;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const aliveMs = 60 + (round % 5) * 45;
      acknowledged.push(...(await runWriter(folder, (round + 1) * 1_000_000, aliveMs)));
      const store = new FolderColdStore(join(folder, "objects"));
      const cache = openNodeDisk(join(folder, "cache"));
      const log = await openLog({
        disk: openNodeDisk(join(folder, "log")),
        cold: { store, cache, cacheBytesMax: 10_000_000, isUploading: false },
      });
      assert.deepEqual(log.recovery.quarantined, []);
      assert.deepEqual(log.recovery.healed, []);
      await log.offload();
      const objects: string[] = [];
      for await (const { object } of store.list("log/")) objects.push(object);
      const referred = [...log.objects()].map(({ object }) => object);
      assert.deepEqual(objects.toSorted(), referred.toSorted(), "the objects are the manifest's");
      uploaded += referred.length;
      for (const partition of log.topic("t")!.partitions) {
        assert.ok(partition.logStart >= starts[partition.index]!, "the start does not go back");
        starts[partition.index] = partition.logStart;
        const records = await readAll(log, partition, 1_000_000);
        const found = new Map(
          records.map(({ offset, value }) => [offset, Number.parseInt(String(value), 10)]),
        );
        for (const [entry, index, offset] of acknowledged) {
          if (index !== partition.index || offset < partition.logStart) continue;
          assert.equal(found.get(offset), entry, `partition ${index}, offset ${offset}`);
        }
      }
      await log.close();
    }
    assert.ok(acknowledged.length > ROUNDS);
    assert.ok(uploaded > ROUNDS, `${uploaded} objects`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
