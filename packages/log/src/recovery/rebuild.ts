// Rebuilds the catalogue without a manifest, from the descriptions in segments and journal.
import type { PartitionDescription } from "../partition/description.ts";
import { type Extent, type Partition, extentPath } from "../partition/partition.ts";
import { Producers } from "../partition/producers.ts";
import { LOG_ID_PATH } from "../catalogue/log-id.ts";
import { ColdStoreError } from "../cold-store.ts";
import { readFileIfThere } from "../disk/files.ts";
import { decodeFileHeader, scanFrames } from "../frame/frame.ts";
import { decodeEntry, type Operation } from "../journal/entry.ts";
import { journalPath } from "../journal/journal.ts";
import type { Recovered, RecoveryOptions } from "./recovered.ts";
import { scanObjects } from "./object-scan.ts";
import { scanSegments, type FoundRun } from "./segment-scan.ts";
import { walkFile } from "../segment/walk-batches.ts";

/**
 * Fills the catalogue from all segments and from the descriptions in the journal files `journals`, which must be
 * replayed afterwards from the first one on. All messages are restored. Lost with the manifest are topics that never had
 * a message, settings changed after the last message, and deletions that are no longer in a journal file: deleted data
 * may reappear.
 */
export async function rebuildCatalogue(
  options: RecoveryOptions,
  recovered: Recovered,
  journals: readonly number[],
): Promise<void> {
  const { disk } = options;
  const scan = await scanSegments(disk);
  recovered.problems.push(...scan.problems);
  recovered.quarantined.push(...scan.damaged);
  recovered.sharedNumber = scan.sharedNumber;
  recovered.generation = scan.generation;
  const descriptions = await readDescriptions(options, recovered, journals);
  if (recovered.version === 3) scan.runs.push(...(await findObjects(options, recovered)));
  const known = new Map<number, PartitionDescription>();
  for (const { description } of scan.runs) known.set(description.uid, description);
  for (const description of descriptions) known.set(description.uid, description);
  makeTopics(recovered, known);
  const byUid = Map.groupBy(scan.runs, ({ description }) => description.uid);
  for (const [uid, runs] of byUid) {
    const partition = recovered.catalogue.partition(uid);
    if (partition !== undefined) await fillPartition(options, recovered, partition, runs);
  }
  recovered.isRebuilt = true;
}

// Without them the log would be opened with a gap: it is not.
async function findObjects({ cold }: RecoveryOptions, recovered: Recovered): Promise<FoundRun[]> {
  const { logId } = recovered;
  if (cold === undefined || typeof logId !== "object") {
    const reason =
      typeof logId === "object"
        ? "the catalogue must be rebuilt and has segments in the object store, which is not configured"
        : "the catalogue must be rebuilt and has segments in the object store of another log";
    recovered.problems.push({ file: LOG_ID_PATH, position: 0, length: 0, reason });
    return [];
  }
  try {
    const { runs, problems } = await scanObjects(cold, logId.id);
    recovered.problems.push(...problems);
    return runs;
  } catch (error) {
    if (!(error instanceof ColdStoreError)) throw error;
    const reason = `the catalogue must be rebuilt and the object store fails: ${error.message}`;
    recovered.problems.push({ file: LOG_ID_PATH, position: 0, length: 0, reason });
    return [];
  }
}

async function readDescriptions(
  { disk }: RecoveryOptions,
  recovered: Recovered,
  journals: readonly number[],
): Promise<PartitionDescription[]> {
  const descriptions: PartitionDescription[] = [];
  const note = (operation: Operation) => {
    if (operation.kind === "describe") descriptions.push(operation.partition);
  };
  for (const number of journals) {
    const bytes = (await readFileIfThere(disk, journalPath(number))) ?? Buffer.alloc(0);
    const header = decodeFileHeader("journal", bytes);
    if (header === undefined) continue;
    recovered.generation = Math.max(recovered.generation, header.generation);
    if (header.version === 3) recovered.version = 3;
    await scanFrames(bytes, header, header.bytes, 0, {
      async accept(entries) {
        for (const entry of entries) decodeEntry(entry).forEach(note);
      },
    });
  }
  return descriptions;
}

function makeTopics(recovered: Recovered, known: ReadonlyMap<number, PartitionDescription>): void {
  const { catalogue } = recovered;
  catalogue.nextUid = Math.max(0, ...known.keys()) + 1;
  for (const [id, partitions] of Map.groupBy(known.values(), (description) => description.id)) {
    // Uids only grow, so the highest one has the description with the most partitions.
    const newest = partitions.at(-1)!;
    const { config } = newest;
    // A deleted topic of the same name may still be in a segment.
    const name = catalogue.byName.has(newest.name)
      ? `${newest.name}.${id.slice(0, 8)}`
      : newest.name;
    catalogue.apply({ kind: "create-topic", id, name, config, firstUid: 0, partitions: 0 });
    const count = Math.max(...partitions.map((description) => description.partitions));
    for (let index = 0; index < count; index++) {
      const uid = partitions.findLast((description) => description.index === index)?.uid;
      const firstUid = uid ?? catalogue.nextUid;
      catalogue.apply({ kind: "add-partitions", id, firstUid, firstIndex: index, count: 1 });
    }
    recovered.changedTopics.add(catalogue.topicById(id)!);
  }
}

// Partitions' own segments come before shared ones, and later segments before earlier ones, because moved batches stay in
// their old place for a while.
async function fillPartition(
  options: RecoveryOptions,
  recovered: Recovered,
  partition: Partition,
  runs: readonly FoundRun[],
): Promise<void> {
  const chosen: Extent[] = [];
  const ranked = runs.toSorted(
    (a, b) =>
      Number(a.extent.shared) - Number(b.extent.shared) ||
      b.extent.generation - a.extent.generation ||
      b.extent.file - a.extent.file ||
      b.extent.position - a.extent.position,
  );
  for (const { extent, description } of ranked) {
    partition.logStart = Math.max(partition.logStart, description.logStart);
    const overlaps = chosen.find(
      (other) => extent.baseOffset < other.nextOffset && other.baseOffset < extent.nextOffset,
    );
    if (overlaps === undefined) chosen.push(extent);
    else if (isCopy(extent, overlaps)) overlaps.object ??= extent.object!;
  }
  chosen.sort((a, b) => a.baseOffset - b.baseOffset);
  partition.setExtents(chosen.filter((extent) => extent.nextOffset > partition.logStart));
  partition.hasFolder = partition.extents.at(-1)?.shared === false;
  partition.flushedEnd = partition.extents.at(-1)?.nextOffset ?? partition.logStart;
  partition.durableEnd = partition.flushedEnd;
  // After the last acknowledged batch there may be batches of a failed write.
  partition.rollNext = partition.hasFolder;
  recovered.dirty.add(partition);
  const epochs = new Map(runs.map(({ extent, leaderEpoch }) => [extent, leaderEpoch]));
  await readBatchState(options, recovered, partition, epochs);
}

function isCopy(extent: Extent, other: Extent): boolean {
  const isSame =
    extent.baseOffset === other.baseOffset &&
    extent.nextOffset === other.nextOffset &&
    extent.length === other.length;
  return isSame && extent.object !== undefined && !other.shared;
}

async function readBatchState(
  { disk, nowMs, producersMax }: RecoveryOptions,
  recovered: Recovered,
  partition: Partition,
  epochs: ReadonlyMap<Extent, number | undefined>,
): Promise<void> {
  for (const extent of partition.extents) {
    if (extent.isRemote === true) {
      const epoch = epochs.get(extent) ?? 0;
      partition.noteEpoch(epoch, extent.baseOffset);
      recovered.leaderEpoch = Math.max(recovered.leaderEpoch, epoch);
      continue;
    }
    const path = extentPath(partition, extent);
    const end = extent.position + extent.length;
    for await (const { header } of walkFile(disk, path, extent.position, end)) {
      partition.noteEpoch(header.leaderEpoch, header.baseOffset);
      recovered.leaderEpoch = Math.max(recovered.leaderEpoch, header.leaderEpoch);
      if (header.producerId < 0) continue;
      partition.producers ??= new Producers();
      partition.producers.settle(header, header.baseOffset, nowMs, producersMax);
    }
  }
}
