// Unreferenced files: removed if that is provably safe, otherwise moved to the quarantine.
import { extentPath, partitionFolder, sharedPath, type Partition } from "../partition/partition.ts";
import { readPart } from "../disk/files.ts";
import type { Disk } from "../disk/port.ts";
import { decodeFileHeader, FILE_HEADER_BYTES } from "../frame/frame.ts";
import { indexPath, keysPath } from "../segment/segments.ts";
import type { QuarantineStore } from "../damage/quarantine.ts";
import { isHealthy, type Recovered } from "./recovered.ts";

/*
 * An unreferenced file is removed only if
 * - the last checkpoint or a deletion in the journal dropped it by name, or
 * - it is empty, an index or filters of keys (caches), or a `.cleaned` file (from an unfinished compaction), or
 * - manifest and journal are undamaged and the file was created after the last checkpoint: its
 *   contents are still in the journal or in the segments that it was to replace, or were never
 *   acknowledged.
 * All other files are moved.
 */

const REBUILT_ENDINGS = [".cleaned", ".index", ".keys"];

/** Cleans up after a recovery; returns the files that were moved to the quarantine. */
export async function clearLeftovers(
  disk: Disk,
  recovered: Recovered,
  quarantine: QuarantineStore,
): Promise<string[]> {
  const moved: string[] = [];
  const sweep = new Sweep(disk, recovered, async (path) => {
    await quarantine.move(path);
    moved.push(path);
  });
  await sweep.removeGarbage();
  await sweep.clearShared();
  for (const partition of recovered.dirty) await sweep.clearFolder(partitionFolder(partition));
  await sweep.clearUnknownTopics();
  return moved;
}

class Sweep {
  readonly #disk: Disk;
  readonly #recovered: Recovered;
  readonly #move: (path: string) => Promise<void>;
  readonly #referenced = new Set<string>();
  readonly #isHealthy: boolean;

  constructor(disk: Disk, recovered: Recovered, move: (path: string) => Promise<void>) {
    this.#disk = disk;
    this.#recovered = recovered;
    this.#move = move;
    this.#isHealthy = isHealthy(recovered);
    for (const partition of recovered.catalogue.partitions()) this.#refer(partition);
  }

  async removeGarbage(): Promise<void> {
    for (const path of this.#recovered.garbage) {
      if (this.#referenced.has(path)) continue;
      await this.#disk.remove(path);
      for (const cache of [indexPath(path), keysPath(path)]) {
        if (!this.#referenced.has(cache)) await this.#disk.remove(cache);
      }
    }
    for (const path of this.#recovered.covered) {
      if (this.#isHealthy) await this.#disk.remove(path);
      else await this.#move(path);
    }
  }

  async clearShared(): Promise<void> {
    for (const name of await this.#disk.list("shared")) {
      const path = `shared/${name}`;
      if (this.#referenced.has(path)) continue;
      const number = Number(/^(\d{16})\.log$/.exec(name)?.[1] ?? 0);
      const isNew = number > this.#recovered.sharedNumber && path === sharedPath(number);
      await this.#clear(path, isNew);
    }
  }

  async clearUnknownTopics(): Promise<void> {
    for (const id of await this.#disk.list("topics")) {
      if (this.#recovered.catalogue.topicById(id) !== undefined) continue;
      for (const index of await this.#disk.list(`topics/${id}`)) {
        await this.clearFolder(`topics/${id}/${index}`);
        await this.#disk.removeFolder(`topics/${id}/${index}`);
      }
      await this.#disk.removeFolder(`topics/${id}`);
    }
  }

  /** Cleans up a partition's folder. */
  async clearFolder(folder: string): Promise<void> {
    for (const name of await this.#disk.list(folder)) {
      const path = `${folder}/${name}`;
      if (this.#referenced.has(path)) continue;
      const isRebuilt = REBUILT_ENDINGS.some((ending) => name.endsWith(ending));
      if (isRebuilt) await this.#disk.remove(path);
      else await this.#clear(path, await this.#isNewSegment(path));
    }
  }

  async #clear(path: string, isNew: boolean): Promise<void> {
    if ((isNew && this.#isHealthy) || (await this.#disk.size(path)) === 0) {
      await this.#disk.remove(path);
    } else await this.#move(path);
  }

  // Created in the last generation, or while it was being written.
  async #isNewSegment(path: string): Promise<boolean> {
    const bytes = await readPart(this.#disk, path, 0, FILE_HEADER_BYTES);
    const header = bytes && decodeFileHeader("segment", bytes);
    return header !== undefined && header.generation + 1 >= this.#recovered.generation;
  }

  #refer(partition: Partition): void {
    for (const extent of partition.extents) {
      const path = extentPath(partition, extent);
      if (extent.isRemote !== true) this.#referenced.add(path);
      if (extent.shared) continue;
      this.#referenced.add(indexPath(path));
      this.#referenced.add(keysPath(path));
    }
  }
}
