// The parts of a log, and its listeners.
import type { ColdReader } from "../cold/cold-reader.ts";
import type { ObjectLedger } from "../catalogue/object-ledger.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import type { Manifest } from "../catalogue/manifest.ts";
import type { Committer } from "../commit/committer.ts";
import type { QuarantineStore } from "../damage/quarantine.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import type { Clock, Disk } from "../disk/port.ts";
import type { Journal } from "../journal/journal.ts";
import type { Segments } from "../segment/segments.ts";
import type { LogEvent, PartitionView } from "../types.ts";
import type { Checkpointer } from "../upkeep/checkpoint.ts";
import type { Limits } from "./limits.ts";

/** The parts of a `Log`. */
export interface LogParts {
  disk: Disk;
  clock: Clock;
  randomId: () => Buffer;
  limits: Limits;
  onEvent: (event: LogEvent) => void;
  catalogue: Catalogue;
  journal: Journal;
  segments: Segments;
  space: FreeSpace;
  manifest: Manifest;
  committer: Committer;
  checkpointer: Checkpointer;
  quarantine: QuarantineStore;
  ledger: ObjectLedger;
  coldReader: ColdReader;
  unlock: () => Promise<void>;
}

/** Called after each durable group with the partitions that have new records. */
export type DurableListener = (partitions: ReadonlySet<PartitionView>) => void;
