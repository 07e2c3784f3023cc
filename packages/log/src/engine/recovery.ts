// From what a crash left on the disk to a log that goes on.
import { decodeEntry, type InPlaceOperation, type Operation } from "../journal/entry.ts";
import { isBatchIntact, readBatchHeader } from "../batch/header.ts";
import { Catalogue, type Topic } from "../catalogue/catalogue.ts";
import {
  epochsOf,
  extentsOf,
  loadManifest,
  type CheckpointDocument,
  type ManifestDocument,
  type PartitionDocument,
  type TopicDocument,
} from "../catalogue/manifest.ts";
import { extentPath, partitionFolder, sharedPath, type Partition } from "../catalogue/partition.ts";
import { Producers } from "../catalogue/producers.ts";
import type { Disk } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { decodeFileHeader, fileHeaderBytes, scanFrames } from "../frame/frame.ts";
import { journalPath, listJournal } from "../journal/journal.ts";
import { indexPath } from "../segment/segments.ts";
import type { Quarantine } from "../types.ts";

/** What recovery needs. */
export type RecoveryParts = { disk: Disk; nowMs: number; producersMax: number };

/** What recovery found; the engine goes on from here. */
export type Recovered = {
  catalogue: Catalogue;
  /** Partitions that the journal had something for. */
  dirty: Set<Partition>;
  changedTopics: Set<Topic>;
  manifestNumber: number;
  sharedNumber: number;
  leaderEpoch: number;
  /** The journal file to start, and where the one before it ended. */
  nextJournal: { number: number; previousEnd: number; earlier: Map<number, number> };
  journalBytes: number;
  cutBytes: number;
  quarantined: Quarantine[];
  /** Files that the last checkpoint gave up. */
  garbage: string[];
};

/**
 * Reads the manifest and the journal after its checkpoint. Cuts a torn tail by starting a new
 * journal file behind it; copies damage below the durable end to `quarantine/`.
 */
export async function recover(parts: RecoveryParts): Promise<Recovered> {
  const manifest = await loadManifest(parts.disk);
  const catalogue = new Catalogue();
  const recovered: Recovered = {
    catalogue,
    dirty: new Set(),
    changedTopics: new Set(),
    manifestNumber: manifest?.number ?? 0,
    sharedNumber: 0,
    leaderEpoch: 0,
    nextJournal: { number: 1, previousEnd: 0, earlier: new Map() },
    journalBytes: 0,
    cutBytes: 0,
    quarantined: [],
    garbage: [],
  };
  if (manifest === undefined) {
    // The manifest is made before the first journal file, so one without the other was not us.
    const journals = await listJournal(parts.disk);
    if (journals.length === 0) return recovered;
    throw new LogError("corrupt", "there is a journal but no manifest");
  }
  for (const { file, position, length } of manifest.damaged) {
    await quarantine(parts.disk, recovered, { file, position, length, reason: "manifest" });
  }
  const checkpoint = applyDocuments(catalogue, manifest.documents);
  if (checkpoint === undefined) throw new LogError("corrupt", "the manifest has no checkpoint");
  recovered.sharedNumber = checkpoint.sharedNumber;
  recovered.leaderEpoch = checkpoint.leaderEpoch;
  await replayJournal(parts, recovered, checkpoint);
  recovered.garbage = checkpoint.garbage;
  for (const partition of catalogue.partitions()) {
    partition.durableEnd = Math.max(partition.durableEnd, partition.logStart);
    partition.nextOffset = partition.durableEnd;
  }
  if (recovered.quarantined.length > 0) recovered.leaderEpoch++;
  return recovered;
}

function applyDocuments(
  catalogue: Catalogue,
  documents: readonly ManifestDocument[],
): CheckpointDocument | undefined {
  let checkpoint: CheckpointDocument | undefined;
  // Later documents replace earlier ones; a partition's may stand before its topic's newest.
  const topics = new Map<string, TopicDocument>();
  const partitions = new Map<number, PartitionDocument>();
  for (const document of documents) {
    switch (document.kind) {
      case "topic":
        topics.set(document.id, document);
        break;
      case "topic-removed":
        topics.delete(document.id);
        break;
      case "partition":
        partitions.set(document.uid, document);
        break;
      case "checkpoint":
        checkpoint = document;
        break;
    }
  }
  for (const topic of topics.values()) restoreTopic(catalogue, topic, partitions);
  if (checkpoint !== undefined) {
    catalogue.nextUid = Math.max(catalogue.nextUid, checkpoint.nextUid);
  }
  return checkpoint;
}

function restoreTopic(
  catalogue: Catalogue,
  document: TopicDocument,
  partitions: ReadonlyMap<number, PartitionDocument>,
): void {
  const { id, name, config, uids } = document;
  const topic = catalogue.apply({
    kind: "create-topic",
    id,
    name,
    config,
    firstUid: uids[0] ?? 0,
    partitions: 0,
  })!;
  for (const [index, uid] of uids.entries()) {
    catalogue.apply({
      kind: "add-partitions",
      id,
      firstUid: uid,
      firstIndex: index,
      count: 1,
    });
    const known = partitions.get(uid);
    if (known !== undefined) restorePartition(topic.partitions[index]!, known);
  }
}

function restorePartition(partition: Partition, document: PartitionDocument): void {
  partition.logStart = document.logStart;
  partition.flushedEnd = document.flushedEnd;
  partition.durableEnd = document.flushedEnd;
  partition.cleanedEnd = document.cleanedEnd;
  partition.epochs = epochsOf(document);
  partition.setExtents(extentsOf(document));
  partition.hasFolder = partition.extents.at(-1)?.shared === false;
  if (document.producers !== undefined) partition.producers = Producers.restore(document.producers);
}

async function replayJournal(
  parts: RecoveryParts,
  recovered: Recovered,
  checkpoint: CheckpointDocument,
): Promise<void> {
  const { disk } = parts;
  const numbers = await listJournal(disk);
  const first = checkpoint.journal.file;
  const relevant = numbers.filter((number) => number >= first);
  for (const number of numbers) {
    // What is older is covered; a crash came between the manifest and its removal.
    if (number < first) await disk.remove(journalPath(number));
  }
  let next = { number: first, previousEnd: 0 };
  for (const number of relevant) {
    const bytes = await readFile(disk, journalPath(number));
    const header = decodeFileHeader("journal", bytes);
    const following = await peekHeader(disk, relevant, number);
    const position = number === first ? checkpoint.journal.position : fileHeaderBytes;
    if (header === undefined) {
      // A file that was just being made holds nothing; one that others follow was damaged.
      if (following === undefined) {
        await disk.remove(journalPath(number));
        break;
      }
      const file = journalPath(number);
      await quarantine(disk, recovered, {
        file,
        position: 0,
        length: bytes.length,
        reason: "header",
      });
      next = { number: number + 1, previousEnd: following.previousEnd };
      continue;
    }
    const limit = following?.previousEnd ?? bytes.length;
    const known = following?.previousEnd ?? (number === first ? position : 0);
    const scan = await scanFrames(bytes.subarray(0, limit), header, position, known, {
      isWhole: (entries) => areEntriesWhole(disk, recovered.catalogue, entries),
      async accept(entries) {
        for (const operation of entries.flatMap(decodeEntry)) {
          await replay(parts, recovered, operation);
        }
      },
    });
    recovered.journalBytes += scan.end - position;
    recovered.cutBytes += scan.cutBytes;
    for (const damage of scan.damaged) {
      await quarantine(disk, recovered, {
        file: journalPath(number),
        ...damage,
        reason: "a group below the durable end does not match its checksum",
      });
    }
    recovered.nextJournal.earlier.set(number, scan.end);
    next = { number: number + 1, previousEnd: scan.end };
  }
  recovered.nextJournal.number = next.number;
  recovered.nextJournal.previousEnd = next.previousEnd;
}

async function peekHeader(disk: Disk, numbers: readonly number[], before: number) {
  const number = numbers.find((candidate) => candidate > before);
  if (number === undefined) return undefined;
  const file = await disk.open(journalPath(number), "read");
  try {
    const bytes = Buffer.alloc(fileHeaderBytes);
    await file.read(bytes, 0, bytes.length, 0);
    return decodeFileHeader("journal", bytes);
  } finally {
    await file.close();
  }
}

// A group above the durable end may refer to bytes that never reached their segment.
async function areEntriesWhole(
  disk: Disk,
  catalogue: Catalogue,
  entries: readonly Buffer[],
): Promise<boolean> {
  for (const operation of entries.flatMap(decodeEntry)) {
    if (operation.kind !== "in-place") continue;
    const partition = catalogue.partition(operation.uid);
    if (partition === undefined) continue;
    if (!(await isStretchWhole(disk, partition, operation))) return false;
  }
  return true;
}

async function isStretchWhole(
  disk: Disk,
  partition: Partition,
  operation: InPlaceOperation,
): Promise<boolean> {
  const bytes = Buffer.allocUnsafe(operation.bytes);
  let file;
  try {
    file = await disk.open(stretchPath(partition, operation), "read");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
  try {
    const count = await file.read(bytes, 0, bytes.length, operation.position);
    if (count < bytes.length) return false;
  } finally {
    await file.close();
  }
  let offset = operation.firstOffset;
  for (let at = 0; at < bytes.length;) {
    const header = readBatchHeader(bytes, at);
    if (header === undefined || header.baseOffset < offset || !isBatchIntact(bytes, at))
      return false;
    offset = header.baseOffset + header.lastOffsetDelta + 1;
    at += header.bytes;
  }
  return offset === operation.nextOffset;
}

async function replay(
  parts: RecoveryParts,
  recovered: Recovered,
  operation: Operation,
): Promise<void> {
  const { catalogue } = recovered;
  switch (operation.kind) {
    case "append": {
      const partition = catalogue.partition(operation.uid);
      if (partition !== undefined) replayAppend(parts, recovered, partition, operation.batch);
      return;
    }
    case "in-place": {
      const partition = catalogue.partition(operation.uid);
      if (partition !== undefined) await replayInPlace(parts, recovered, partition, operation);
      return;
    }
    case "trim": {
      const partition = catalogue.partition(operation.uid);
      if (partition === undefined) return;
      partition.logStart = Math.max(partition.logStart, operation.logStart);
      recovered.dirty.add(partition);
      return;
    }
    case "create-topic":
    case "configure-topic":
    case "add-partitions":
    case "delete-topic": {
      const topic = catalogue.apply(operation);
      if (topic === undefined) return;
      if (topic.live) recovered.changedTopics.add(topic);
      else {
        recovered.changedTopics.delete(topic);
        for (const partition of topic.partitions) recovered.dirty.delete(partition);
      }
    }
  }
}

function replayAppend(
  parts: RecoveryParts,
  recovered: Recovered,
  partition: Partition,
  bytes: Buffer,
): void {
  const header = readBatchHeader(bytes);
  if (header === undefined) throw new LogError("corrupt", "a journal entry holds no batch");
  const { baseOffset, maxTimestamp } = header;
  const nextOffset = baseOffset + header.lastOffsetDelta + 1;
  if (header.producerId >= 0) {
    partition.producers ??= new Producers();
    partition.producers.settle(header, baseOffset, parts.nowMs, parts.producersMax);
  }
  if (baseOffset < partition.durableEnd) return;
  partition.noteEpoch(header.leaderEpoch, baseOffset);
  partition.pushTail({ baseOffset, nextOffset, maxTimestamp, bytes });
  recovered.dirty.add(partition);
}

async function replayInPlace(
  parts: RecoveryParts,
  recovered: Recovered,
  partition: Partition,
  operation: InPlaceOperation,
): Promise<void> {
  for (const bytes of operation.producerHeaders) {
    const header = readBatchHeader(bytes);
    if (header === undefined) continue;
    partition.producers ??= new Producers();
    partition.producers.settle(header, header.baseOffset, parts.nowMs, parts.producersMax);
  }
  if (operation.nextOffset <= partition.flushedEnd) return;
  const last = partition.extents.at(-1);
  const joins =
    last !== undefined &&
    !last.shared &&
    last.file === operation.segmentBase &&
    last.generation === operation.generation &&
    last.length === operation.position;
  if (!joins && operation.position !== 0) {
    // Only after damage: what led up to this stretch is gone, and with it where it joins.
    await quarantine(parts.disk, recovered, {
      file: stretchPath(partition, operation),
      position: operation.position,
      length: operation.bytes,
      reason: "the stretch does not join what is known of its segment",
    });
    return;
  }
  if (joins) {
    last.length += operation.bytes;
    last.nextOffset = operation.nextOffset;
    last.maxTimestamp = Math.max(last.maxTimestamp, operation.maxTimestamp);
    partition.extentBytes += operation.bytes;
  } else {
    partition.setExtents([...partition.extents, stretchExtent(operation)]);
  }
  const kept = partition.tail.filter((batch) => batch.baseOffset >= operation.nextOffset);
  partition.dropTail(partition.tail.length - kept.length);
  partition.noteEpoch(operation.leaderEpoch, operation.firstOffset);
  partition.hasFolder = true;
  partition.flushedEnd = operation.nextOffset;
  partition.durableEnd = Math.max(partition.durableEnd, operation.nextOffset);
  recovered.dirty.add(partition);
}

function stretchExtent(operation: InPlaceOperation) {
  return {
    shared: false,
    file: operation.segmentBase,
    generation: operation.generation,
    position: operation.position,
    length: operation.bytes,
    baseOffset: operation.firstOffset,
    nextOffset: operation.nextOffset,
    maxTimestamp: operation.maxTimestamp,
  };
}

function stretchPath(partition: Partition, operation: InPlaceOperation): string {
  return extentPath(partition, stretchExtent(operation));
}

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

/** Removes files in a partition's folder that none of its extents lies in. */
export async function removePartitionOrphans(disk: Disk, partition: Partition): Promise<void> {
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

async function quarantine(disk: Disk, recovered: Recovered, report: Quarantine): Promise<void> {
  recovered.quarantined.push(report);
  await disk.makeFolder("quarantine");
  const source = await disk.open(report.file, "read").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (source === undefined) return;
  const name = `${report.file.replaceAll("/", "-")}-${report.position}`;
  const copy = await disk.open(`quarantine/${name}`, "create");
  try {
    const bytes = Buffer.alloc(report.length);
    const count = await source.read(bytes, 0, report.length, report.position);
    await copy.write([bytes.subarray(0, count)], 0);
    await copy.sync();
  } finally {
    await source.close();
    await copy.close();
  }
}

async function readFile(disk: Disk, path: string): Promise<Buffer> {
  const file = await disk.open(path, "read");
  try {
    const bytes = Buffer.allocUnsafe(await file.size());
    const count = await file.read(bytes, 0, bytes.length, 0);
    return bytes.subarray(0, count);
  } finally {
    await file.close();
  }
}
