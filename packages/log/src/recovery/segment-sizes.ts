// A first check of segments: each referenced file exists and is long enough.
import { extentEnd, extentPath, type Extent } from "../partition/partition.ts";
import { objectPrefix } from "../partition/object-name.ts";
import type { Disk } from "../disk/port.ts";
import type { Recovered } from "./recovered.ts";

/** Files checked in parallel. */
const PARALLEL_LOOKS = 16;

/**
 * Reports segment files that are missing or too short. Does not read their contents. If the object store has a copy, it
 * takes the place of the file.
 */
export async function checkSegmentSizes(disk: Disk, recovered: Recovered): Promise<void> {
  await adoptFiles(disk, recovered);
  const needed = new Map<string, number>();
  const copies = new Map<string, Extent>();
  for (const partition of recovered.catalogue.partitions()) {
    for (const extent of partition.extents) {
      if (extent.isRemote === true) continue;
      const path = extentPath(partition, extent);
      const end = extentEnd(extent);
      if (extent.object !== undefined) copies.set(path, extent);
      if (end > (needed.get(path) ?? 0)) needed.set(path, end);
    }
  }
  const queue = needed.entries();
  await Promise.all(
    Array.from({ length: PARALLEL_LOOKS }, async () => {
      for (const [file, end] of queue) {
        const size = await disk.size(file);
        if (size !== undefined && size >= end) continue;
        const position = size ?? 0;
        const reason = size === undefined ? "missing" : "shorter than its contents";
        const copy = copies.get(file);
        if (copy !== undefined) {
          copy.isRemote = true;
          recovered.healed.push({ file, position, length: end - position, reason });
          recovered.garbage.push(file);
          continue;
        }
        recovered.problems.push({ file, position, length: end - position, reason });
      }
    }),
  );
}

// A restored log does not own the objects it refers to: where it has the file, it does not need them. A backup may contain
// files of segments that were only in the store.
async function adoptFiles(disk: Disk, { catalogue, logId, dirty }: Recovered): Promise<void> {
  const own = typeof logId === "object" ? objectPrefix(logId.id.toString("hex")) : undefined;
  for (const partition of catalogue.partitions()) {
    for (const extent of partition.extents) {
      if (extent.object === undefined || (own && extent.object.startsWith(own))) continue;
      const size = await disk.size(extentPath(partition, extent));
      if (size === undefined || size < extentEnd(extent)) continue;
      delete extent.object;
      delete extent.isRemote;
      dirty.add(partition);
    }
  }
}
