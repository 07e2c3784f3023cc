// The result of a recovery: the recovered state and everything that was wrong.
import type { Catalogue, Topic } from "../catalogue/catalogue.ts";
import type { FoundLogId } from "../catalogue/log-id.ts";
import type { Partition } from "../partition/partition.ts";
import type { ColdStore } from "../cold-store.ts";
import type { Disk } from "../disk/port.ts";
import type { Quarantine } from "../types.ts";

/** Options of a recovery. */
export interface RecoveryOptions {
  disk: Disk;
  nowMs: number;
  producersMax: number;
  /** Lists the objects of a log whose catalogue must be rebuilt. */
  cold?: ColdStore | undefined;
}

/** The result of a recovery. Nothing on the disk has been changed yet. */
export interface Recovered {
  catalogue: Catalogue;
  /** Partitions with entries in the journal. */
  dirty: Set<Partition>;
  changedTopics: Set<Topic>;
  /** Highest manifest number in use, 0 in a new folder. */
  manifestNumber: number;
  /** Generation of the manifest used. */
  generation: number;
  /** Format version of the manifest used, and of the next files. */
  version: 2 | 3;
  /** Uploads that began without an extent that names their object, and objects to remove. */
  intents: Set<string>;
  removals: Set<string>;
  /** Objects of topics that the journal deletes; their removal is not in the manifest yet. */
  freshRemovals: Set<string>;
  logId: FoundLogId;
  sharedNumber: number;
  leaderEpoch: number;
  /** Number of the journal file to start, valid bytes of the file before it, and sizes of all earlier files by number. */
  nextJournal: { number: number; previousEnd: number; earlier: Map<number, number> };
  journalBytes: number;
  cutBytes: number;
  /** Entries below the durable end that do not match their checksum. */
  quarantined: Quarantine[];
  /** Files that are missing, truncated, stale or unreadable. The log does not open if there are any. */
  problems: Quarantine[];
  /** Damage to one of two copies: no data is missing. */
  healed: Quarantine[];
  /** Damaged files, to be moved to the quarantine. */
  spoiled: string[];
  /** Files dropped by the last checkpoint or by a deletion in the journal. */
  garbage: string[];
  /** Journal files that the checkpoint covers, not removed because of a crash. */
  covered: string[];
  /** The catalogue was rebuilt from segments and journal, because no manifest was usable. */
  isRebuilt: boolean;
}

/** True if all files are consistent with each other. */
export function isHealthy({ quarantined, problems, healed, isRebuilt }: Recovered): boolean {
  return !isRebuilt && quarantined.length + problems.length + healed.length === 0;
}
