// The result of a recovery: the state to go on from, and everything that was wrong.
import type { Catalogue, Topic } from "../catalogue/catalogue.ts";
import type { Partition } from "../partition/partition.ts";
import type { Disk } from "../disk/port.ts";
import type { Quarantine } from "../types.ts";

/** Inputs of a recovery. */
export type RecoveryParts = { disk: Disk; nowMs: number; producersMax: number };

/** The outcome of a recovery. Nothing on the disk has been changed yet. */
export type Recovered = {
  catalogue: Catalogue;
  /** Partitions with entries in the journal. */
  dirty: Set<Partition>;
  changedTopics: Set<Topic>;
  /** Highest manifest number in use, 0 in a new folder. */
  manifestNumber: number;
  /** Generation of the manifest that was used. */
  generation: number;
  sharedNumber: number;
  leaderEpoch: number;
  /** The journal file to start, and where the one before it ended. */
  nextJournal: { number: number; previousEnd: number; earlier: Map<number, number> };
  journalBytes: number;
  cutBytes: number;
  /** Entries below the durable end that do not match their checksum. */
  quarantined: Quarantine[];
  /** Files that are missing, cut short, stale or unreadable. The log does not open with any. */
  problems: Quarantine[];
  /** Damage to one of two copies. */
  healed: Quarantine[];
  /** Whole files that are damaged, to be kept aside. */
  spoiled: string[];
  /** Files that the last checkpoint or a deletion in the journal gave up. */
  garbage: string[];
  /** Journal files that the checkpoint covers; a crash came before their removal. */
  covered: string[];
  /** The catalogue was rebuilt from segments and journal, as no manifest could be used. */
  isRebuilt: boolean;
};

/** Whether everything that the files say about each other is consistent. */
export function isHealthy({ quarantined, problems, healed, isRebuilt }: Recovered): boolean {
  return !isRebuilt && quarantined.length + problems.length + healed.length === 0;
}
