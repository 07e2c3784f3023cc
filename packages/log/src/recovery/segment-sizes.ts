// A first check of segments: each referenced file exists and is long enough.
import { extentPath } from "../partition/partition.ts";
import type { Disk } from "../disk/port.ts";
import type { Recovered } from "./recovered.ts";

/** Files checked in parallel. */
const PARALLEL_LOOKS = 16;

/** Reports segment files that are missing or too short. Does not read their contents. */
export async function checkSegmentSizes(disk: Disk, recovered: Recovered): Promise<void> {
  const needed = new Map<string, number>();
  for (const partition of recovered.catalogue.partitions()) {
    for (const extent of partition.extents) {
      const path = extentPath(partition, extent);
      const end = extent.position + extent.length;
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
        recovered.problems.push({ file, position, length: end - position, reason });
      }
    }),
  );
}
