// Opens a log: recovers its state after a crash and builds its parts.
import { randomBytes } from "node:crypto";
import type { CheckpointDocument } from "../catalogue/manifest-documents.ts";
import { writeLogId } from "../catalogue/log-id.ts";
import { Manifest, prepareManifest } from "../catalogue/manifest.ts";
import { ObjectLedger } from "../catalogue/object-ledger.ts";
import { ColdReader } from "../cold/cold-reader.ts";
import type { ColdShare } from "../cold/cold-share.ts";
import type { ColdStore, ColdStoreError } from "../cold-store.ts";
import { systemClock } from "../disk/node-disk.ts";
import type { Disk } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { FILE_HEADER_BYTES } from "../frame/frame.ts";
import { Journal, JOURNAL_FOLDER } from "../journal/journal.ts";
import type { HeaderSource } from "../segment/segment-header.ts";
import { Segments } from "../segment/segments.ts";
import type { LogEvent, LogOptions, Quarantine, RecoveryReport } from "../types.ts";
import { Checkpointer } from "../upkeep/checkpoint.ts";
import { Committer } from "../commit/committer.ts";
import { isDiskFull } from "../disk/disk-error.ts";
import { FreeSpace } from "../disk/free-space.ts";
import { limitsOf } from "./limits.ts";
import type { DurableListener, LogParts } from "./log-parts.ts";
import { Log } from "./log.ts";
import { clearLeftovers } from "../recovery/leftovers.ts";
import { QuarantineStore } from "../damage/quarantine.ts";
import { isHealthy, type Recovered } from "../recovery/recovered.ts";
import { recover } from "../recovery/recovery.ts";

/** Maximum number of problems in an error message. */
const PROBLEMS_NAMED_MAX = 5;

/**
 * Opens the log in the disk's root folder and recovers its state after a crash.
 * Rejects with `locked` if another process has it open, `needs-repair` if acknowledged data would be missing (nothing is
 * changed then), `quarantine-full`.
 */
export async function openLog(options: LogOptions): Promise<Log> {
  const { disk } = options;
  const started = performance.now();
  const unlock = await disk.lock();
  try {
    return await buildLog(options, unlock, started);
  } catch (error) {
    await unlock();
    throw isDiskFull(error) ? explainFullStart(error) : error;
  }
}

function explainFullStart(cause: unknown): LogError {
  const text = "no space left on the disk to open the log; free some space and start again";
  return new LogError("disk-full", text, { cause });
}

/** Called by a repair before anything on the disk is changed; may modify the recovered state. */
export type Mend = (recovered: Recovered, segments: Segments) => Promise<void>;

/** Opens a locked folder. With `mend`, problems are accepted. */
export async function buildLog(
  options: LogOptions & { recoverFrom?: ColdStore | undefined },
  unlock: () => Promise<void>,
  started: number,
  mend?: Mend,
): Promise<Log> {
  const { disk } = options;
  const clock = options.clock ?? systemClock;
  const limits = limitsOf(options);
  const onEvent = options.onEvent ?? (() => undefined);
  const randomId = options.randomId ?? (() => randomBytes(16));
  const salt = () => randomId().subarray(0, 8);
  const recovered = await recover({
    disk,
    nowMs: clock.now(),
    producersMax: limits.producersMax,
    cold: options.cold?.store ?? options.recoverFrom,
  });
  if (recovered.problems.length > 0 && mend === undefined) throw needsRepair(recovered.problems);
  await prepareFolders(disk);
  const quarantine = await QuarantineStore.open(disk, limits.quarantineBytesMax);
  const { nextJournal, catalogue, generation } = recovered;
  const { version } = recovered;
  const number = recovered.manifestNumber;
  const manifest = new Manifest(disk, salt, { number, generation, version });
  const source = { salt, generation: () => manifest.generation };
  const ledger = restoreLedger(recovered);
  const coldReader: ColdReader = new ColdReader({
    clock,
    hasRoom: () => writers.space.freeBytes > writers.space.reserveBytes * 2,
    onFailure: (error) => failures.note(error),
  });
  const failures = { note: (_error: ColdStoreError): void => undefined };
  const segments = new Segments(disk, limits, source, coldReader);
  await mend?.(recovered, segments);
  for (const object of recovered.freshRemovals) ledger.addRemoval(object);
  for (const damage of [...recovered.quarantined, ...recovered.problems]) {
    await quarantine.copy(damage);
  }
  for (const path of recovered.spoiled) await quarantine.move(path);
  if (isNew(recovered)) await beginManifest(manifest);
  const journal = await Journal.start(disk, salt, {
    ...nextJournal,
    generation: manifest.generation,
    version,
  });
  const base = {
    disk,
    clock,
    limits,
    onEvent,
    catalogue,
    journal,
    segments,
    manifest,
    ledger,
    source,
  };
  const writers = await openWriters(options, { ...base, share: coldReader.share }, recovered);
  const { space, listeners, committer, checkpointer } = writers;
  takeOver(recovered, committer, checkpointer);
  // After the next journal file has begun: until then another recovery would need the files that the last one refers to.
  const setAside = await clearLeftovers(disk, recovered, quarantine);
  for (const report of recovered.quarantined) onEvent({ kind: "quarantined", report });
  for (const report of recovered.healed) onEvent({ kind: "healed", report });
  for (const file of setAside) onEvent({ kind: "set-aside", file });
  const { logId } = recovered;
  if (typeof logId === "object" && logId.isDamaged) await writeLogId(disk, logId.id);
  // A new leader epoch must be durable before batches are stamped with it, and damaged copies must be replaced.
  if (!isHealthy(recovered)) await checkpointer.run();
  await space.refresh();
  const log = new Log(
    { ...base, randomId, space, committer, checkpointer, quarantine, coldReader, unlock },
    listeners,
    report(recovered, setAside, performance.now() - started),
  );
  failures.note = (error) => log.noteReadFailure(error);
  if (options.cold !== undefined) await log.setColdStore(options.cold);
  return log;
}

type WriterParts = Pick<
  LogParts,
  | "disk"
  | "clock"
  | "limits"
  | "onEvent"
  | "catalogue"
  | "journal"
  | "segments"
  | "manifest"
  | "ledger"
> & { source: HeaderSource; share: ColdShare };

/** Creates the parts that write: commits and checkpoints. */
async function openWriters(
  { sync, reserveBytes }: LogOptions,
  parts: WriterParts,
  { leaderEpoch, sharedNumber }: Recovered,
) {
  const { disk, limits, onEvent, share } = parts;
  const space = await FreeSpace.open({
    disk,
    reserveBytes,
    owedBytes: () => committer.tailBytes,
    onChange: (isFull) => onEvent(describeSpace(space, isFull)),
  });
  const listeners = new Set<DurableListener>();
  const committer: Committer = new Committer({
    ...parts,
    space,
    mode: sync ?? { kind: "group" },
    limits: { ...limits, journalBytesMax: limits.checkpointBytes * 4 },
    onChange: (change, topic) => checkpointer.noteChange(change, topic),
    onDurable: (partitions) => {
      for (const listener of listeners) listener(partitions);
    },
    onCommitted: (durationMs, nowMs) => share.noteCommit(durationMs, nowMs),
  });
  committer.leaderEpoch = leaderEpoch;
  const checkpointer = new Checkpointer({ ...parts, committer, sharedNumber });
  return { space, listeners, committer, checkpointer };
}

function restoreLedger({ logId, intents, removals }: Recovered): ObjectLedger {
  const ledger = new ObjectLedger();
  if (typeof logId === "object") ledger.logId = logId.id.toString("hex");
  ledger.restore(intents, removals);
  return ledger;
}

function isNew({ manifestNumber, isRebuilt }: Recovered): boolean {
  return manifestNumber === 0 && !isRebuilt;
}

function needsRepair(problems: readonly Quarantine[]): LogError {
  const named = problems
    .slice(0, PROBLEMS_NAMED_MAX)
    .map(({ file, reason }) => `${file}: ${reason}`);
  const more = problems.length - named.length;
  if (more > 0) named.push(`and ${more} more`);
  const text = `the log is damaged and was not opened; nothing was changed (${named.join("; ")})`;
  return new LogError("needs-repair", text);
}

async function prepareFolders(disk: Disk): Promise<void> {
  await prepareManifest(disk);
  for (const folder of [JOURNAL_FOLDER, "shared", "topics"]) await disk.makeFolder(folder);
  await disk.syncFolder("");
}

async function beginManifest(manifest: Manifest): Promise<void> {
  const first: CheckpointDocument = {
    kind: "checkpoint",
    generation: manifest.generation + 1,
    journal: { file: 1, position: FILE_HEADER_BYTES },
    leaderEpoch: 0,
    nextUid: 1,
    sharedNumber: 0,
    garbage: [],
  };
  await manifest.rewrite([first], () => Promise.resolve());
}

function describeSpace({ freeBytes, reserveBytes }: FreeSpace, isFull: boolean): LogEvent {
  return isFull
    ? { kind: "disk-full", freeBytes, reserveBytes }
    : { kind: "disk-has-room", freeBytes };
}

function takeOver(recovered: Recovered, committer: Committer, checkpointer: Checkpointer): void {
  for (const partition of recovered.dirty) {
    committer.dirty.add(partition);
    committer.tailBytes += partition.tailBytes;
  }
  for (const topic of recovered.changedTopics) checkpointer.noteTopic(topic);
}

function report(
  recovered: Recovered,
  setAside: readonly string[],
  durationMs: number,
): RecoveryReport {
  return {
    durationMs,
    topics: recovered.catalogue.topicCount,
    partitions: recovered.catalogue.partitionCount,
    dirtyPartitions: recovered.dirty.size,
    journalBytes: recovered.journalBytes,
    cutBytes: recovered.cutBytes,
    quarantined: recovered.quarantined,
    healed: recovered.healed,
    setAside,
    leaderEpoch: recovered.leaderEpoch,
  };
}
