// Repeated kill -9 of a real writer on a real disk, on the same folder.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openLog, openNodeDisk } from "../../src/index.ts";
import { readAll } from "../simulation/read-all.ts";

/** Number of rounds; soak tests set more. */
const ROUNDS = Number(process.env["PLATFORM_KILL_ROUNDS"] ?? 8);

/** Entry number, then pairs of partition and offset. */
type Acknowledged = [number, [number, number], [number, number]];

async function runWriter(folder: string, start: number, aliveMs: number): Promise<Acknowledged[]> {
  const writer = join(import.meta.dirname, "kill-writer.ts");
  const child = spawn(process.execPath, [writer, folder, String(start)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  const timer = Promise.withResolvers<void>();
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (chunk: string) => {
    // The time starts at the first acknowledgement, so that a slow start does not waste the round.
    if (text === "") setTimeout(timer.resolve, aliveMs);
    text += chunk;
  });
  await timer.promise;
  child.kill("SIGKILL");
  await once(child, "close");
  const lines = text.split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Acknowledged);
}

test(`nothing acknowledged is lost over ${ROUNDS} rounds of kill -9`, async () => {
  const folder = mkdtempSync(join(tmpdir(), "platform-log-kill-"));
  const acknowledged: Acknowledged[] = [];
  try {
    for (let round = 0; round < ROUNDS; round++) {
      acknowledged.push(
        ...(await runWriter(folder, (round + 1) * 1_000_000, 15 + (round % 5) * 10)),
      );
      const log = await openLog({ disk: openNodeDisk(folder) });
      assert.deepEqual(log.recovery.quarantined, []);
      const found = new Map<number, Map<number, number>>();
      for (const partition of log.topic("t")!.partitions) {
        const records = await readAll(log, partition, 1_000_000);
        for (const [offset, record] of records.entries()) {
          assert.equal(record.offset, offset);
          const entry = Number(record.value!.toString("latin1", 0, 20).split(" ")[0]);
          const places = found.get(entry) ?? new Map<number, number>();
          places.set(partition.index, offset);
          found.set(entry, places);
        }
      }
      for (const places of found.values()) assert.equal(places.size, 2, "whole or absent");
      for (const [entry, ...places] of acknowledged) {
        for (const [partition, offset] of places) {
          assert.equal(found.get(entry)?.get(partition), offset, `entry ${entry}`);
        }
      }
      await log.close();
    }
    assert.ok(acknowledged.length > ROUNDS);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
