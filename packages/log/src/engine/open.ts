// Opening: recovers what a crash left, makes every part of a log and hands it on.
import { randomBytes } from "node:crypto";
import { Manifest, prepareManifest, type CheckpointDocument } from "../catalogue/manifest.ts";
import { systemClock } from "../disk/node-disk.ts";
import type { Disk } from "../disk/port.ts";
import { fileHeaderBytes } from "../frame/frame.ts";
import { Journal, journalFolder } from "../journal/journal.ts";
import { Segments } from "../segment/segments.ts";
import type { LogOptions, RecoveryReport } from "../types.ts";
import { Checkpointer } from "./checkpoint.ts";
import { Committer } from "./commit.ts";
import { limitsOf } from "./limits.ts";
import { Log, type DurableListener } from "./log.ts";
import { removeOrphans } from "./orphans.ts";
import type { Recovered } from "./recovered.ts";
import { recover } from "./recovery.ts";

/**
 * Opens the log in the disk's root folder, recovering what a crash left.
 * Rejects with `locked` while another process has it open, `corrupt` if the catalogue is unreadable.
 */
export async function openLog(options: LogOptions): Promise<Log> {
  const { disk } = options;
  const started = performance.now();
  const unlock = await disk.lock();
  try {
    return await build(options, unlock, started);
  } catch (error) {
    await unlock();
    throw error;
  }
}

async function build(
  options: LogOptions,
  unlock: () => Promise<void>,
  started: number,
): Promise<Log> {
  const { disk } = options;
  const clock = options.clock ?? systemClock;
  const limits = limitsOf(options);
  const onEvent = options.onEvent ?? (() => undefined);
  const randomId = options.randomId ?? (() => randomBytes(16));
  const salt = () => randomId().subarray(0, 8);
  await prepareFolders(disk);
  const recovered = await recover({
    disk,
    nowMs: clock.now(),
    producersMax: limits.producersMax,
  });
  const manifest = new Manifest(disk, salt, recovered.manifestNumber);
  const { nextJournal, catalogue } = recovered;
  if (recovered.manifestNumber === 0) await beginManifest(manifest);
  const journal = await Journal.start(
    disk,
    salt,
    nextJournal.number,
    nextJournal.previousEnd,
    nextJournal.earlier,
  );
  const segments = new Segments(disk, limits);
  const listeners = new Set<DurableListener>();
  const committer: Committer = new Committer({
    catalogue,
    journal,
    segments,
    clock,
    mode: options.sync ?? { kind: "group" },
    limits: { ...limits, journalBytesMax: limits.checkpointBytes * 4 },
    onEvent,
    onChange: (change, topic) => checkpointer.noteChange(change, topic),
    onDurable: (partitions) => {
      for (const listener of listeners) listener(partitions);
    },
  });
  committer.leaderEpoch = recovered.leaderEpoch;
  const { sharedNumber } = recovered;
  const checkpointer = new Checkpointer({
    disk,
    catalogue,
    committer,
    journal,
    segments,
    manifest,
    sharedNumber,
  });
  takeOver(recovered, committer, checkpointer);
  await removeOrphans(disk, recovered);
  for (const report of recovered.quarantined) onEvent({ kind: "quarantined", report });
  // A new leader epoch has to be durable before anything is stamped with it.
  if (recovered.quarantined.length > 0) await checkpointer.run();
  return new Log(
    {
      disk,
      clock,
      randomId,
      limits,
      onEvent,
      catalogue,
      journal,
      segments,
      manifest,
      committer,
      checkpointer,
      unlock,
    },
    listeners,
    report(recovered, performance.now() - started),
  );
}

async function prepareFolders(disk: Disk): Promise<void> {
  await prepareManifest(disk);
  for (const folder of [journalFolder, "shared", "topics"]) await disk.makeFolder(folder);
  await disk.syncFolder("");
}

async function beginManifest(manifest: Manifest): Promise<void> {
  const first: CheckpointDocument = {
    kind: "checkpoint",
    journal: { file: 1, position: fileHeaderBytes },
    leaderEpoch: 0,
    nextUid: 1,
    sharedNumber: 0,
    garbage: [],
  };
  await manifest.rewrite([first], () => Promise.resolve());
}

function takeOver(recovered: Recovered, committer: Committer, checkpointer: Checkpointer): void {
  for (const partition of recovered.dirty) {
    committer.dirty.add(partition);
    committer.tailBytes += partition.tailBytes;
  }
  for (const topic of recovered.changedTopics) checkpointer.noteTopic(topic);
}

function report(recovered: Recovered, durationMs: number): RecoveryReport {
  return {
    durationMs,
    topics: recovered.catalogue.topicCount,
    partitions: recovered.catalogue.partitionCount,
    dirtyPartitions: recovered.dirty.size,
    journalBytes: recovered.journalBytes,
    cutBytes: recovered.cutBytes,
    quarantined: recovered.quarantined,
    leaderEpoch: recovered.leaderEpoch,
  };
}
