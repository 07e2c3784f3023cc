// The log's public shapes: options, topics, appends, reads and reports.
import type { Clock, Disk } from "./disk/port.ts";

/**
 * When an append counts as done.
 *
 * - `group`: after the fdatasync that covers it; one covers everyone who waits.
 * - `interval`: after the write; a sync follows within `ms`. A power cut loses up to that much.
 * - `os`: after the write; the operating system decides. A killed process still loses nothing.
 */
export type SyncMode = { kind: "group" } | { kind: "interval"; ms: number } | { kind: "os" };

/** How the log is opened. Every limit has a default; sizes in bytes, times in milliseconds. */
export type LogOptions = {
  /** The files; `openNodeDisk(folder)` in earnest. */
  disk: Disk;
  /** Wall clock and timers; the system's by default. */
  clock?: Clock;
  /** `{ kind: "group" }` by default. */
  sync?: SyncMode;
  /** 16 random bytes for a topic id; `randomBytes` by default. */
  randomId?: () => Buffer;
  /** Largest batch that is taken. 8 MiB by default. */
  batchBytesMax?: number;
  /** Bytes that may wait for the disk before appends are refused as `overloaded`. 64 MiB. */
  pendingBytesMax?: number;
  /** Bytes that one group write carries at most. 8 MiB. */
  groupBytesMax?: number;
  /** From this many bytes for one partition in one group, they are written in place. 128 KiB. */
  inPlaceBytesMin?: number;
  /** A journal file is followed by a new one from this size on. 64 MiB. */
  journalFileBytes?: number;
  /** Journal bytes after which a checkpoint starts by itself. 64 MiB. */
  checkpointBytes?: number;
  /** Longest time between a write and the checkpoint that covers it. 60 s. */
  checkpointMs?: number;
  /** Open segment files kept at most. 512. */
  openFilesMax?: number;
  /** Bytes of loaded sparse indexes of closed segments kept at most. 32 MiB. */
  indexBytesMax?: number;
  /** Topics at most. 200 000. */
  topicsMax?: number;
  /** Partitions of all topics at most. 400 000. */
  partitionsMax?: number;
  /** Idempotent producers remembered per partition at most; the oldest goes first. 1 000. */
  producersMax?: number;
  /** A producer not heard of for this long is forgotten. 24 h. */
  producerExpiryMs?: number;
  /** Keys that one compaction pass remembers at most; more are done in further passes. 1 000 000. */
  compactionKeysMax?: number;
  /**
   * Bytes of the disk that appends leave free for deletion, retention and checkpoints; below, appends are refused as
   * `disk-full`. By default the smaller of 1 GiB and a quarter of the disk; 0 turns the reserve off.
   */
  reserveBytes?: number;
  /**
   * Bytes in the folder `quarantine` at most. 16 GiB. At the bound opening is refused
   * (`quarantine-full`): nothing in there is ever deleted by the log.
   */
  quarantineBytesMax?: number;
  /** Called with what happens in the background and nobody awaits. Must not throw. */
  onEvent?: (event: LogEvent) => void;
};

/** Background events, for the service's own log and metrics. */
export type LogEvent =
  | { kind: "checkpoint"; durationMs: number; partitions: number; bytes: number }
  | { kind: "checkpoint-failed"; error: Error }
  | { kind: "group-failed"; error: Error; appends: number; fatal: boolean }
  | { kind: "compacted"; topic: string; partition: number; before: number; after: number }
  | { kind: "disk-full"; freeBytes: number; reserveBytes: number }
  | { kind: "disk-has-room"; freeBytes: number }
  | { kind: "quarantined"; report: Quarantine }
  | { kind: "damaged"; damage: Damage }
  | { kind: "quarantine-failed"; error: Error; file: string }
  | { kind: "healed"; report: Quarantine }
  | { kind: "set-aside"; file: string };

/** Topic settings; times in milliseconds, sizes in bytes, -1 means without limit. */
export type TopicConfig = {
  /** `delete` drops old segments, `compact` keeps the last record of each key. */
  cleanupPolicy: "delete" | "compact" | "compact,delete";
  /** Age of a segment's last record after which it is dropped. -1 by default. */
  retentionMs: number;
  /** Bytes a partition keeps at least before it drops its oldest segment. -1 by default. */
  retentionBytes: number;
  /** A segment is followed by a new one from this size on. 256 MiB by default. */
  segmentBytes: number;
  /** How long compaction keeps tombstones. 24 h by default. */
  deleteRetentionMs: number;
};

/** The settings of a topic that names none. */
export const topicConfigDefault: TopicConfig = {
  cleanupPolicy: "delete",
  retentionMs: -1,
  retentionBytes: -1,
  segmentBytes: 256 * 1024 * 1024,
  deleteRetentionMs: 24 * 60 * 60 * 1000,
};

/** One partition as its users see it. All numbers are live. */
export type PartitionView = {
  readonly topic: TopicView;
  readonly index: number;
  /** First offset that can be read. */
  readonly logStart: number;
  /** Offset after the last durable record: the high watermark and the last stable offset. */
  readonly durableEnd: number;
  /** Bytes that the partition's batches take. */
  readonly bytes: number;
  /** Where each leader epoch begins, ascending. */
  readonly epochs: readonly EpochStart[];
  /** False once the topic is deleted. */
  readonly live: boolean;
};

/** A leader epoch and the first offset written under it. */
export type EpochStart = { epoch: number; startOffset: number };

/** One topic. `id` is durable, sixteen random bytes, and is Kafka's topic UUID. */
export type TopicView = {
  readonly id: Buffer;
  readonly name: string;
  readonly config: TopicConfig;
  readonly partitions: readonly PartitionView[];
  readonly live: boolean;
};

/**
 * One batch to append. The log takes the buffer over: it stamps base offset and leader epoch into
 * it, and may keep and hand it to readers, so nobody may write to it afterwards.
 * `verified` says that `validateBatch` has passed (or that `encodeBatch` made it), and saves a
 * second checksum. `unlessDuplicate` leaves the batch out (with offsets of -1) where another one of the
 * same entry turns out to be a duplicate: for what was made of that one's records.
 */
export type AppendBatch = {
  partition: PartitionView;
  batch: Buffer;
  verified?: boolean;
  unlessDuplicate?: boolean;
};

/** Where a batch went. `duplicate`: the producer sent it before; offsets are the first one's. */
export type AppendResult = { baseOffset: number; lastOffset: number; duplicate: boolean };

/** What a read found: whole batches in offset order; the first may begin before the asked offset. */
export type ReadResult = {
  /** To be sent as they are, one after another. Readers must not write to them. */
  buffers: readonly Buffer[];
  bytes: number;
  /** Where the next read goes on. Equals the asked offset when nothing was there. */
  nextOffset: number;
};

/** A stretch of a file of the log that is not as it should be. */
export type Quarantine = { file: string; position: number; length: number; reason: string };

/** A range of offsets of a partition that cannot be read, as found while reading. */
export type Damage = {
  topic: string;
  partition: number;
  /** The first offset that is damaged. */
  fromOffset: number;
  /** The first offset behind the damage. */
  resumeOffset: number;
  /** The file, and the damaged bytes of it. */
  file: string;
  position: number;
  length: number;
  reason: string;
};

/** What opening the log found. */
export type RecoveryReport = {
  durationMs: number;
  topics: number;
  partitions: number;
  /** Partitions that had anything in the journal after the checkpoint. */
  dirtyPartitions: number;
  /** Journal bytes read. */
  journalBytes: number;
  /** Bytes of a torn tail that was never acknowledged and was cut. */
  cutBytes: number;
  /** Damage below the durable end. Not empty: acknowledged data may be missing, see the report. */
  quarantined: readonly Quarantine[];
  /** Damage to something that is stored twice: nothing is missing. */
  healed: readonly Quarantine[];
  /** Files that nothing refers to, moved to the quarantine. */
  setAside: readonly string[];
  leaderEpoch: number;
};

/** The outcome of `checkLog` and `repairLog`. */
export type CheckReport = {
  /** Nothing is damaged. */
  isWhole: boolean;
  /** The log can be opened as it is. */
  opens: boolean;
  topics: number;
  partitions: number;
  /** Bytes of intact batches in segments. */
  bytes: number;
  /** Damage that may mean missing data. */
  damaged: Quarantine[];
  /** Damage to something that is stored twice. */
  healed: Quarantine[];
};

/** Figures for metrics. */
export type LogStats = {
  topics: number;
  partitions: number;
  entries: number;
  groups: number;
  appendedBytes: number;
  pendingBytes: number;
  tailBytes: number;
  journalBytes: number;
  openFiles: number;
  /** Bytes that are free on the disk, as of about a second ago. */
  diskFreeBytes: number;
  /** Bytes that appends leave free. */
  diskReserveBytes: number;
  /** Whether appends are refused because less than the reserve is free. */
  diskFull: boolean;
  /** Damage that was found at the start and since: possible losses, and what was healed from a copy. */
  damageFound: number;
  /** Damaged ranges of offsets that readers cannot read. */
  damagedRanges: number;
  quarantineFiles: number;
  quarantineBytes: number;
  state: "open" | "read-only" | "closed";
};
