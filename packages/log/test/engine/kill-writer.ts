// A process to be killed: appends to the log in the given folder and prints the acknowledged entries.
import { encodeBatch } from "../../src/batch/index.ts";
import { openLog, openNodeDisk } from "../../src/index.ts";

const [folder, start] = process.argv.slice(2) as [string, string];
const log = await openLog({
  disk: openNodeDisk(folder),
  checkpointBytes: 400_000,
  journalFileBytes: 300_000,
  inPlaceBytesMin: 20_000,
});
const topic = await log.createTopic("t", { partitions: 3, orGet: true });
let number = Number(start);

// Eight concurrent appenders; each entry is complete in two partitions or in none.
async function appendOn(lane: number): Promise<void> {
  for (;;) {
    const entry = number++;
    const size = entry % 10 === 0 ? 30_000 : 200;
    const value = Buffer.from(`${entry} `.padEnd(size, "x"));
    const partitions = [topic.partitions[lane % 3]!, topic.partitions[(lane + 1) % 3]!];
    const results = await log.append(
      partitions.map((partition) => ({
        partition,
        batch: encodeBatch([{ key: null, value, headers: [], timestamp: entry }]),
        verified: true,
      })),
    );
    const places = results.map(({ baseOffset }, at) => [partitions[at]!.index, baseOffset]);
    process.stdout.write(`${JSON.stringify([entry, ...places])}\n`);
  }
}

await Promise.all(Array.from({ length: 8 }, (_, lane) => appendOn(lane)));
