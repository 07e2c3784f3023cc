// Offline check and repair of a log's folder.
import { extentEnd, extentPath, type Extent, type Partition } from "../partition/partition.ts";
import type { Disk } from "../disk/port.ts";
import { journalPath, listJournal } from "../journal/journal.ts";
import type { Segments } from "../segment/segments.ts";
import type { CheckReport, LogOptions } from "../types.ts";
import { buildLog } from "../engine/open.ts";
import { isHealthy, type Recovered } from "../recovery/recovered.ts";
import { recover } from "../recovery/recovery.ts";
import { limitsOf } from "../engine/limits.ts";
import { findObjects, type FoundObjects, type ObjectCheck } from "./objects.ts";
import { openExtent, verifyExtents, type ExtentSource, type VerifiedExtent } from "./verify.ts";

/**
 * Reads everything in the folder and reports damage; changes nothing. With `objects` it looks for the objects of remote
 * segments as well. Rejects with `locked` if a process has the log open, and with a `ColdStoreError` if the store fails.
 */
export async function checkLog(disk: Disk, objects?: ObjectCheck): Promise<CheckReport> {
  const unlock = await disk.lock();
  try {
    return await checkLocked(disk, objects);
  } finally {
    await unlock();
  }
}

async function checkLocked(disk: Disk, objects?: ObjectCheck): Promise<CheckReport> {
  return (await inspectLocked(disk, objects)).report;
}

/** Like `checkLog`, for callers that hold the lock; returns the recovered state as well. */
export async function inspectLocked(
  disk: Disk,
  objects?: ObjectCheck,
): Promise<{ report: CheckReport; recovered: Recovered }> {
  const recovered = await recover(partsOf(disk, objects));
  const report = begin(recovered);
  const found = await findObjects(recovered.catalogue, objects);
  report.objects.isChecked = found !== undefined;
  for (const partition of recovered.catalogue.partitions()) {
    for await (const verified of verifyExtents(disk, partition, found)) {
      note(report, verified, found);
    }
  }
  return { report: finish(report, recovered), recovered };
}

/**
 * Repairs a damaged folder: unusable data goes to the quarantine, intact data stays, and the manifest is rewritten. The
 * report lists the missing data. With `objects`, missing and damaged objects become damaged ranges; intact batches of
 * damaged ones are kept on the disk.
 */
export async function repairLog(options: LogOptions, objects?: ObjectCheck): Promise<CheckReport> {
  const { disk } = options;
  const unlock = await disk.lock();
  let report: CheckReport | undefined;
  const known = { ...options, recoverFrom: objects?.store };
  const log = await buildLog(known, unlock, performance.now(), async (recovered, segments) => {
    // Before the repair adds what it quarantines itself, which is listed as it is found.
    report = finish(begin(recovered), recovered);
    const found = await findObjects(recovered.catalogue, objects);
    report.objects.isChecked = found !== undefined;
    const parts = { disk, recovered, segments, report, found };
    for (const partition of recovered.catalogue.partitions()) await mendPartition(parts, partition);
    // The next checkpoint removes batches without a description from the journal.
    const hasUndescribed = recovered.problems.some(({ file }) => file === "journal");
    for (const number of hasUndescribed ? await listJournal(disk) : []) {
      const file = journalPath(number);
      const length = (await disk.size(file)) ?? 0;
      recovered.quarantined.push({
        file,
        position: 0,
        length,
        reason: "the whole file was copied",
      });
    }
  }).catch(async (error: unknown) => {
    await unlock();
    throw error;
  });
  await log.checkpoint();
  await log.close();
  return report!;
}

function partsOf(disk: Disk, objects: ObjectCheck | undefined) {
  const { producersMax } = limitsOf({ disk });
  return { disk, nowMs: Date.now(), producersMax, cold: objects?.store };
}

function begin(recovered: Recovered): CheckReport {
  return {
    isWhole: isHealthy(recovered),
    opens: recovered.problems.length === 0,
    topics: recovered.catalogue.topicCount,
    partitions: recovered.catalogue.partitionCount,
    bytes: 0,
    objects: { count: 0, bytes: 0, isChecked: false },
    damaged: [],
    healed: recovered.healed,
  };
}

// Damage to one of two copies is no loss.
function note(
  report: CheckReport,
  { extent, intact, damaged }: VerifiedExtent,
  found: FoundObjects | undefined,
): void {
  const { object, isRemote } = extent;
  const problem = object === undefined ? undefined : found?.problemOf(extent);
  const hasCopy = object !== undefined && isRemote !== true && problem === undefined;
  for (const { length } of hasCopy ? [extent] : intact) report.bytes += length;
  (hasCopy ? report.healed : report.damaged).push(...damaged);
  if (damaged.length > 0) report.isWhole = false;
  if (object === undefined) return;
  report.objects.count += 1;
  report.objects.bytes += extentEnd(extent);
  if (problem === undefined || isRemote === true) return;
  report.isWhole = false;
  report.healed.push({ file: object, position: 0, length: 0, reason: problem });
}

function finish(report: CheckReport, recovered: Recovered): CheckReport {
  report.damaged.unshift(...recovered.problems, ...recovered.quarantined);
  if (report.damaged.length > 0) report.isWhole = false;
  return report;
}

interface MendParts {
  disk: Disk;
  recovered: Recovered;
  segments: Segments;
  report: CheckReport;
  found: FoundObjects | undefined;
}

async function mendPartition(parts: MendParts, partition: Partition): Promise<void> {
  const { disk, recovered, report, found } = parts;
  const extents: Extent[] = [];
  let isChanged = false;
  for await (const verified of verifyExtents(disk, partition, found)) {
    const { extent, damaged } = verified;
    note(report, verified, found);
    const hasCopy = extent.object !== undefined && extent.isRemote !== true;
    const isObjectUsable = hasCopy && found?.problemOf(extent) === undefined;
    if (hasCopy && !isObjectUsable) {
      // It is uploaded again.
      recovered.freshRemovals.add(extent.object!);
      delete extent.object;
      isChanged = true;
    }
    if (damaged.length > 0) isChanged = true;
    if (damaged.length > 0 && isObjectUsable) {
      // The object has the same bytes.
      extent.isRemote = true;
      recovered.garbage.push(extentPath(partition, extent));
      extents.push(extent);
      continue;
    }
    recovered.quarantined.push(...damaged);
    extents.push(...(await keepIntact(parts, verified)));
  }
  if (!isChanged) return;
  partition.setExtents(extents);
  partition.rollNext = extents.at(-1)?.shared === false;
  partition.revision++;
  recovered.dirty.add(partition);
}

// A segment in a partition's own files is one extent from its start; intact batches after damage get a new segment. An
// object is one as well, so intact batches of a damaged one get segments on the disk.
async function keepIntact(
  { disk, segments, recovered, found }: MendParts,
  { partition, extent, intact, damaged }: VerifiedExtent,
): Promise<Extent[]> {
  if (damaged.length === 0) return [extent];
  if (extent.shared) return intact;
  if (extent.isRemote === true) recovered.freshRemovals.add(extent.object!);
  const source = await openExtent(disk, partition, extent, found);
  if (source === undefined || typeof source === "string") return [];
  try {
    const kept: Extent[] = [];
    for (const run of intact) {
      if (run.position === extent.position && extent.isRemote !== true) kept.push(run);
      else kept.push(await copyRun({ disk, segments, source }, partition, run));
    }
    return kept;
  } finally {
    await source.close();
  }
}

async function copyRun(
  { disk, segments, source }: Pick<MendParts, "disk" | "segments"> & { source: ExtentSource },
  partition: Partition,
  { object: _object, isRemote: _isRemote, ...run }: Extent,
): Promise<Extent> {
  const header = segments.headerOf(partition, run.baseOffset, run.nextOffset);
  const moved: Extent = {
    ...run,
    file: run.baseOffset,
    generation: run.generation + 1,
    position: header.length,
  };
  if (!partition.hasFolder) await segments.makeFolder(partition);
  const file = await disk.open(extentPath(partition, moved), "create");
  try {
    await file.write([header], 0);
    const chunkBytes = 1024 * 1024;
    for (let done = 0; done < run.length; done += chunkBytes) {
      const bytes = Buffer.alloc(Math.min(chunkBytes, run.length - done));
      const count = await source.read(bytes, run.position + done);
      await file.write([bytes.subarray(0, count)], moved.position + done);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  await segments.syncPartitionFolder(partition);
  return moved;
}
