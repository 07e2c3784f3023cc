// Offline check and repair of a log's folder.
import { extentPath, type Extent, type Partition } from "../partition/partition.ts";
import { readPart } from "../disk/files.ts";
import type { Disk } from "../disk/port.ts";
import { journalPath, listJournal } from "../journal/journal.ts";
import type { Segments } from "../segment/segments.ts";
import type { CheckReport, LogOptions, Quarantine } from "../types.ts";
import { buildLog } from "../engine/open.ts";
import { isHealthy, type Recovered } from "../recovery/recovered.ts";
import { recover } from "../recovery/recovery.ts";
import { limitsOf } from "../engine/limits.ts";
import { verifyExtents, type VerifiedExtent } from "./verify.ts";

/**
 * Reads everything in the folder and reports damage; changes nothing. Rejects with `locked` if a process has the log
 * open.
 */
export async function checkLog(disk: Disk): Promise<CheckReport> {
  const unlock = await disk.lock();
  try {
    return await checkLocked(disk);
  } finally {
    await unlock();
  }
}

/** Like `checkLog`, for callers that hold the lock. */
export async function checkLocked(disk: Disk): Promise<CheckReport> {
  const recovered = await recover(partsOf(disk));
  const report = begin(recovered);
  for (const partition of recovered.catalogue.partitions()) {
    for await (const { intact, damaged } of verifyExtents(disk, partition)) {
      note(report, intact, damaged);
    }
  }
  return finish(report, recovered);
}

/**
 * Repairs a damaged folder: unusable data goes to the quarantine, intact data stays, and the manifest is rewritten. The
 * report lists the missing data.
 */
export async function repairLog(options: LogOptions): Promise<CheckReport> {
  const { disk } = options;
  const unlock = await disk.lock();
  let report: CheckReport | undefined;
  const log = await buildLog(options, unlock, performance.now(), async (recovered, segments) => {
    report = begin(recovered);
    for (const partition of recovered.catalogue.partitions()) {
      await mendPartition(disk, recovered, segments, partition, report);
    }
    finish(report, recovered);
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

function partsOf(disk: Disk) {
  return { disk, nowMs: Date.now(), producersMax: limitsOf({ disk }).producersMax };
}

function begin(recovered: Recovered): CheckReport {
  return {
    isWhole: isHealthy(recovered),
    opens: recovered.problems.length === 0,
    topics: recovered.catalogue.topicCount,
    partitions: recovered.catalogue.partitionCount,
    bytes: 0,
    damaged: [],
    healed: recovered.healed,
  };
}

function note(
  report: CheckReport,
  intact: readonly Extent[],
  damaged: readonly Quarantine[],
): void {
  for (const { length } of intact) report.bytes += length;
  report.damaged.push(...damaged);
}

function finish(report: CheckReport, recovered: Recovered): CheckReport {
  report.damaged.unshift(...recovered.problems, ...recovered.quarantined);
  if (report.damaged.length > 0) report.isWhole = false;
  return report;
}

async function mendPartition(
  disk: Disk,
  recovered: Recovered,
  segments: Segments,
  partition: Partition,
  report: CheckReport,
): Promise<void> {
  const extents: Extent[] = [];
  let isDamaged = false;
  for await (const verified of verifyExtents(disk, partition)) {
    note(report, verified.intact, verified.damaged);
    recovered.quarantined.push(...verified.damaged);
    if (verified.damaged.length > 0) isDamaged = true;
    if (verified.damaged.length > 0 && verified.extent.object !== undefined) {
      // The object has the same bytes.
      verified.extent.isRemote = true;
      recovered.garbage.push(extentPath(partition, verified.extent));
      extents.push(verified.extent);
      continue;
    }
    extents.push(...(await keepIntact(disk, segments, verified)));
  }
  if (!isDamaged) return;
  partition.setExtents(extents);
  partition.rollNext = extents.at(-1)?.shared === false;
  partition.revision++;
  recovered.dirty.add(partition);
}

// A segment in a partition's own files is one extent from its start; intact batches after damage get a new segment.
async function keepIntact(
  disk: Disk,
  segments: Segments,
  { partition, extent, intact, damaged }: VerifiedExtent,
): Promise<Extent[]> {
  if (damaged.length === 0) return [extent];
  if (extent.shared) return intact;
  const kept: Extent[] = [];
  for (const run of intact) {
    if (run.position === extent.position) kept.push(run);
    else kept.push(await copyRun(disk, segments, partition, run));
  }
  return kept;
}

async function copyRun(
  disk: Disk,
  segments: Segments,
  partition: Partition,
  run: Extent,
): Promise<Extent> {
  const header = segments.headerOf(partition, run.baseOffset, run.nextOffset);
  const moved: Extent = {
    ...run,
    file: run.baseOffset,
    generation: run.generation + 1,
    position: header.length,
  };
  const source = extentPath(partition, run);
  const file = await disk.open(extentPath(partition, moved), "create");
  try {
    await file.write([header], 0);
    const chunkBytes = 1024 * 1024;
    for (let done = 0; done < run.length; done += chunkBytes) {
      const length = Math.min(chunkBytes, run.length - done);
      const bytes = await readPart(disk, source, run.position + done, length);
      await file.write([bytes ?? Buffer.alloc(0)], moved.position + done);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  await segments.syncPartitionFolder(partition);
  return moved;
}
