// Files that a crash left behind without anything that refers to them.
import { extentPath, partitionFolder, sharedPath, type Partition } from "../catalogue/partition.ts";
import type { Disk } from "../disk/port.ts";
import { indexPath } from "../segment/segments.ts";
import type { Recovered } from "./recovered.ts";

/**
 * Removes files that were being made or removed when the process died: only where something was
 * going on. To be called when the next journal file has begun, as before that another recovery
 * would still look at what the journal refers to.
 */
export async function removeOrphans(disk: Disk, recovered: Recovered): Promise<void> {
  const { catalogue, dirty, garbage } = recovered;
  for (const path of garbage) {
    await disk.remove(path);
    await disk.remove(indexPath(path));
  }
  const sharedKept = new Set<string>();
  for (const partition of catalogue.partitions()) {
    for (const extent of partition.extents) {
      if (extent.shared) sharedKept.add(sharedPath(extent.file));
    }
  }
  for (const name of await disk.list("shared")) {
    if (!sharedKept.has(`shared/${name}`)) await disk.remove(`shared/${name}`);
  }
  for (const partition of dirty) await removePartitionOrphans(disk, partition);
  for (const id of await disk.list("topics")) {
    if (catalogue.topicById(id) !== undefined) continue;
    for (const index of await disk.list(`topics/${id}`)) {
      for (const name of await disk.list(`topics/${id}/${index}`)) {
        await disk.remove(`topics/${id}/${index}/${name}`);
      }
      await disk.removeFolder(`topics/${id}/${index}`);
    }
    await disk.removeFolder(`topics/${id}`);
  }
}

// Removes files in a partition's folder that none of its extents lies in.
async function removePartitionOrphans(disk: Disk, partition: Partition): Promise<void> {
  const kept = new Set<string>();
  for (const extent of partition.extents) {
    if (extent.shared) continue;
    const path = extentPath(partition, extent);
    kept.add(path);
    kept.add(indexPath(path));
  }
  const folder = partitionFolder(partition);
  for (const name of await disk.list(folder)) {
    if (!kept.has(`${folder}/${name}`)) await disk.remove(`${folder}/${name}`);
  }
}
