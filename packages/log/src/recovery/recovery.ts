// Recovery: determines the state after a crash or damage. Changes nothing on the disk.
import { Catalogue } from "../catalogue/catalogue.ts";
import { LOG_ID_PATH, readLogId, type FoundLogId } from "../catalogue/log-id.ts";
import { loadManifest, type LoadedManifest } from "../catalogue/manifest-files.ts";
import { readMark, type Mark } from "../journal/mark.ts";
import { listJournal } from "../journal/journal.ts";
import { rebuildCatalogue } from "./rebuild.ts";
import type { Recovered, RecoveryOptions } from "./recovered.ts";
import { replayJournal } from "./replay-journal.ts";
import { applyDocuments } from "./restore.ts";
import { checkSegmentSizes } from "./segment-sizes.ts";

/**
 * Reads the manifest and the journal after its checkpoint. Damage above the durable end is a torn tail: a new journal
 * file begins after it. All other damage is reported.
 */
export async function recover(options: RecoveryOptions): Promise<Recovered> {
  const { disk } = options;
  const manifest = await loadManifest(disk);
  const mark = await readMark(disk);
  const journals = await listJournal(disk);
  const logId = await readLogId(disk);
  const recovered = begin(manifest, logId);
  checkLogId(recovered, logId);
  dropStale(manifest, mark);
  if (manifest.chosen === undefined) {
    const isNew =
      manifest.numberMax === 0 &&
      journals.length === 0 &&
      mark === "missing" &&
      (await disk.list("shared")).length + (await disk.list("topics")).length === 0;
    if (!isNew) await recoverWithoutManifest(options, recovered, manifest, mark, journals);
    return recovered;
  }
  const { documents, checkpoint, generation } = manifest.chosen;
  noteDamagedCopies(recovered, manifest);
  recovered.version = manifest.chosen.version === 3 ? 3 : 2;
  applyDocuments(recovered.catalogue, documents, recovered);
  recovered.generation = generation;
  recovered.sharedNumber = checkpoint.sharedNumber;
  recovered.leaderEpoch = checkpoint.leaderEpoch;
  recovered.garbage.push(...checkpoint.garbage);
  checkMark(recovered, mark, journals.length > 0);
  await replayJournal(options, recovered, {
    numbers: journals,
    first: checkpoint.journal,
    mark,
    // Files of version 1 have no mark; a new folder has none until its first journal file is complete.
    mayLackMark: manifest.chosen.copy === undefined || generation <= 1,
  });
  settlePartitions(recovered);
  await checkSegmentSizes(disk, recovered);
  if (recovered.quarantined.length + recovered.problems.length > 0) recovered.leaderEpoch++;
  return recovered;
}

async function recoverWithoutManifest(
  options: RecoveryOptions,
  recovered: Recovered,
  manifest: LoadedManifest,
  mark: Mark | "missing" | "damaged",
  journals: readonly number[],
): Promise<void> {
  for (const damage of manifest.damaged) {
    recovered.quarantined.push(damage);
    recovered.spoiled.push(damage.file);
  }
  const reason = "no copy is usable: the catalogue was rebuilt from segments and journal";
  recovered.quarantined.push({ file: "manifest", position: 0, length: 0, reason });
  await rebuildCatalogue(options, recovered, journals);
  if (typeof mark === "object") {
    recovered.generation = Math.max(recovered.generation, mark.generation);
  }
  const file = journals[0] ?? 1;
  const first = { file, position: 0 };
  await replayJournal(options, recovered, { numbers: journals, first, mark, mayLackMark: false });
  settlePartitions(recovered);
  recovered.leaderEpoch++;
}

function settlePartitions({ catalogue }: Recovered): void {
  for (const partition of catalogue.partitions()) {
    partition.durableEnd = Math.max(partition.durableEnd, partition.logStart);
    partition.nextOffset = partition.durableEnd;
  }
}

// With the id the log would lose the right to remove its objects, so it is not replaced silently.
function checkLogId(recovered: Recovered, logId: FoundLogId): void {
  const file = LOG_ID_PATH;
  if (logId === "damaged") {
    const reason = "both copies are damaged";
    recovered.problems.push({ file, position: 0, length: 0, reason });
    recovered.spoiled.push(file);
  } else if (typeof logId === "object" && logId.isDamaged) {
    recovered.healed.push({ file, position: 0, length: 0, reason: "one of its copies is damaged" });
  }
}

function begin(manifest: LoadedManifest, logId: FoundLogId): Recovered {
  return {
    catalogue: new Catalogue(),
    dirty: new Set(),
    changedTopics: new Set(),
    manifestNumber: manifest.numberMax,
    generation: 0,
    version: 2,
    intents: new Set(),
    removals: new Set(),
    freshRemovals: new Set(),
    logId,
    sharedNumber: 0,
    leaderEpoch: 0,
    nextJournal: { number: 1, previousEnd: 0, earlier: new Map() },
    journalBytes: 0,
    cutBytes: 0,
    quarantined: [],
    problems: [],
    healed: [],
    spoiled: [],
    garbage: [],
    covered: [],
    isRebuilt: false,
  };
}

function noteDamagedCopies(recovered: Recovered, manifest: LoadedManifest): void {
  for (const damage of manifest.damaged) {
    recovered.healed.push(damage);
    if (damage.file !== manifest.chosen?.path) recovered.spoiled.push(damage.file);
  }
  if (manifest.isPartnerMissing) {
    const { path } = manifest.chosen!;
    const reason = "the other copy of this manifest is missing";
    recovered.healed.push({ file: path, position: 0, length: 0, reason });
  }
}

// The mark is written after both copies of a manifest, so a manifest older than the mark was truncated or replaced.
function dropStale(manifest: LoadedManifest, mark: Mark | "missing" | "damaged"): void {
  const { chosen } = manifest;
  if (chosen === undefined || typeof mark !== "object") return;
  if (mark.generation <= chosen.generation) return;
  const reason = `it is of generation ${chosen.generation}, but ${mark.generation} was written`;
  manifest.damaged.push({ file: chosen.path, position: 0, length: 0, reason });
  manifest.chosen = undefined;
}

function checkMark(
  recovered: Recovered,
  mark: Mark | "missing" | "damaged",
  hasJournal: boolean,
): void {
  if (typeof mark === "object" || (mark === "missing" && !(recovered.generation > 1 && hasJournal)))
    return;
  const reason = mark === "damaged" ? "both slots are damaged" : "missing";
  recovered.healed.push({ file: "journal/durable.mark", position: 0, length: 0, reason });
}
