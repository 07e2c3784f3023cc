// The write speed of the disk alone: the upper bound of all durable stores.
import { open, rm } from "node:fs/promises";
import { join } from "node:path";

/** Files kept per lane, as a store keeps some objects while it replaces others. */
const KEPT = 8;

/** Measures MiB/s in `folder`: `lanes` concurrent sequences of new files of `bytes`, each written and synced. */
export async function measureDisk(
  folder: string,
  load: { lanes: number; bytes: number; seconds: number },
): Promise<number> {
  const body = Buffer.alloc(load.bytes, "x");
  const begun = performance.now();
  const end = begun + load.seconds * 1_000;
  const lane = async (index: number): Promise<number> => {
    const nameFile = (count: number) => join(folder, `disk-${index}-${count}`);
    let count = 0;
    for (; performance.now() < end; count++) {
      await using file = await open(nameFile(count), "w");
      await file.write(body, 0, body.length, 0);
      await file.datasync();
      await rm(nameFile(count - KEPT), { force: true });
    }
    return count;
  };
  const counts = await Promise.all(Array.from({ length: load.lanes }, (_, index) => lane(index)));
  const seconds = (performance.now() - begun) / 1_000;
  const files = counts.reduce((sum, count) => sum + count, 0);
  return (files * load.bytes) / 2 ** 20 / seconds;
}
