// The public types of the log: options, topics, appends, reads and reports.
import type { BufferPool } from "@platform/kernel/memory";
import type { ColdStore } from "./cold-store.ts";
import type { Clock, Disk } from "./disk/port.ts";

/**
 * When an append is acknowledged.
 *
 * - `group`: after the fdatasync that covers it; one fdatasync covers all waiting appends.
 * - `interval`: after the write; a sync follows within `ms`. A power cut loses up to that much.
 * - `os`: after the write; the operating system decides when to sync. A killed process loses nothing.
 */
export type SyncMode = { kind: "group" } | { kind: "interval"; ms: number } | { kind: "os" };

/** Options of `openLog`. Every limit has a default; sizes in bytes, times in milliseconds. */
export interface LogOptions {
  /** Usually `openNodeDisk(folder)`. */
  disk: Disk;
  /** Wall clock and timers; the system clock by default. */
  clock?: Clock;
  /** `{ kind: "group" }` by default. */
  sync?: SyncMode;
  /** 16 random bytes for a topic id; `randomBytes` by default. */
  randomId?: () => Buffer;
  /** Largest accepted batch. 8 MiB by default. */
  batchBytesMax?: number;
  /** Bytes that may wait for the disk before appends fail as `overloaded`. 64 MiB. */
  pendingBytesMax?: number;
  /** Largest group write. 8 MiB. */
  groupBytesMax?: number;
  /** Bytes of one partition in one group from which they are written in place. 128 KiB. */
  inPlaceBytesMin?: number;
  /** Size from which a new journal file is started. 64 MiB. */
  journalFileBytes?: number;
  /** Journal bytes after which a checkpoint starts. 64 MiB. */
  checkpointBytes?: number;
  /** Longest time between a write and the checkpoint that covers it. 60 s. */
  checkpointMs?: number;
  /** Maximum number of open segment files. 512. */
  openFilesMax?: number;
  /** Maximum size of the loaded sparse indexes of closed segments. 32 MiB. */
  indexBytesMax?: number;
  /** Maximum number of topics. 200 000. */
  topicsMax?: number;
  /** Maximum number of partitions of all topics. 400 000. */
  partitionsMax?: number;
  /** Idempotent producers kept per partition; the least recently active one is dropped. 1 000. */
  producersMax?: number;
  /** Idle time after which a producer is forgotten. 24 h. */
  producerExpiryMs?: number;
  /** Keys that one compaction pass keeps in memory; further keys need further passes. 1 000 000. */
  compactionKeysMax?: number;
  /**
   * Free bytes that appends leave for deletion, retention and checkpoints; with less, appends fail as `disk-full`. The
   * smaller of 1 GiB and a quarter of the disk by default; 0 disables the reserve.
   */
  reserveBytes?: number;
  /**
   * Maximum size of the folder `quarantine`. 16 GiB. At the bound the log does not open (`quarantine-full`), since
   * the log never deletes from it.
   */
  quarantineBytesMax?: number;
  /** The object store with closed segments, and its use; see `Log.setColdStore`. None by default. */
  cold?: ColdOptions | undefined;
  /** Called with background events. Must not throw. */
  onEvent?: (event: LogEvent) => void;
}

/** An object store for closed segments. */
export interface ColdOptions {
  store: ColdStore;
  /** Folder for chunks of objects that were read. Its contents may be deleted at any time. */
  cache: Disk;
  /** Maximum size of the cache. */
  cacheBytesMax: number;
  /** False: nothing is uploaded; objects are read and removed. */
  isUploading: boolean;
  /** Age at which the growing segment of a topic with `offload` is closed. 1 h by default. */
  rollMs?: number;
}

/** Background events, for logging and metrics. */
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
  | { kind: "set-aside"; file: string }
  | { kind: "offloaded"; topic: string; partition: number; object: string; bytes: number }
  | { kind: "offload-failed"; operation: OffloadOperation; code: string; object?: string }
  /** A damaged batch keeps its segment from being uploaded. */
  | { kind: "offload-damaged"; topic: string; partition: number; file: string; position: number }
  /** So many objects wait for their removal that retention of remote segments pauses. */
  | { kind: "removals-full"; waiting: number }
  /** Objects of this log that nothing refers to. They are never deleted. */
  | { kind: "unknown-objects"; count: number; example: string };

/** Operations on the object store. */
export type OffloadOperation = "upload" | "read" | "remove" | "list";

/** Topic settings; times in milliseconds, sizes in bytes, -1 means unlimited. */
export interface TopicConfig {
  /** `delete` drops old segments, `compact` keeps the last record of each key. */
  cleanupPolicy: "delete" | "compact" | "compact,delete";
  /** Age of its last record at which a segment is dropped. -1 by default. */
  retentionMs: number;
  /** Size from which a partition drops its oldest segments; it keeps at least this much. -1 by default. */
  retentionBytes: number;
  /** Size from which a new segment is started. 256 MiB by default. */
  segmentBytes: number;
  /** Age at which compaction removes tombstones. 24 h by default. */
  deleteRetentionMs: number;
  /** Closed segments are uploaded to the object store, if there is one. Not for `compact`. False by default. */
  offload: boolean;
  /**
   * Age and size from which uploaded segments leave the disk; `retentionMs` and `retentionBytes` are for both copies. -2,
   * the default: as those.
   */
  localRetentionMs: number;
  localRetentionBytes: number;
  /** Closed segments get filters of their keys, so that one key is found without reading all. False by default. */
  keyIndex: boolean;
}

export const TOPIC_CONFIG_DEFAULT: TopicConfig = {
  cleanupPolicy: "delete",
  retentionMs: -1,
  retentionBytes: -1,
  segmentBytes: 256 * 1024 * 1024,
  deleteRetentionMs: 24 * 60 * 60 * 1000,
  offload: false,
  localRetentionMs: -2,
  localRetentionBytes: -2,
  keyIndex: false,
};

/** A partition, read-only. All numbers are live. */
export interface PartitionView {
  readonly topic: TopicView;
  readonly index: number;
  /** First readable offset. */
  readonly logStart: number;
  /** Offset after the last durable record: the high watermark and the last stable offset. */
  readonly durableEnd: number;
  /** Size of the partition's batches. */
  readonly bytes: number;
  /** Leader epochs, ascending. */
  readonly epochs: readonly EpochStart[];
  /** False once the topic is deleted. */
  readonly live: boolean;
}

/** A leader epoch and the first offset written under it. */
export interface EpochStart {
  epoch: number;
  startOffset: number;
}

/** A topic. `id` is durable, sixteen random bytes, and is Kafka's topic UUID. */
export interface TopicView {
  readonly id: Buffer;
  readonly name: string;
  readonly config: TopicConfig;
  readonly partitions: readonly PartitionView[];
  readonly live: boolean;
}

/**
 * A batch to append. The log takes ownership of the buffer: it writes base offset and leader epoch into it and may
 * pass it to readers, so it must not be modified afterwards.
 * `verified`: `validateBatch` has passed, or `encodeBatch` built the batch; skips a second checksum.
 * `unlessDuplicate`: skip the batch (offsets of -1) if another batch of the same append turns out to be a duplicate;
 * for batches derived from that one.
 */
export interface AppendBatch {
  partition: PartitionView;
  batch: Buffer;
  verified?: boolean;
  unlessDuplicate?: boolean;
}

/** Result of an append. `duplicate`: the producer sent the batch before; the offsets are those of the first one. */
export interface AppendResult {
  baseOffset: number;
  lastOffset: number;
  duplicate: boolean;
}

/** Options of a read. */
export interface ReadOptions {
  /** Ends a read of the object store. */
  signal?: AbortSignal | undefined;
  /** Memory for bytes from files. The caller gives the buffers of the result back when nobody needs them; it need not. */
  memory?: BufferPool | undefined;
}

/** Result of a read: whole batches in offset order; the first one may begin before the requested offset. */
export interface ReadResult {
  /** To be sent one after another, unchanged. Readers must not modify them. */
  buffers: readonly Buffer[];
  bytes: number;
  /** Offset of the next read; the requested offset if nothing was read. */
  nextOffset: number;
}

/** A damaged range of a file. */
export interface Quarantine {
  file: string;
  position: number;
  length: number;
  reason: string;
}

/** A range of offsets that cannot be read, found by a read. */
export interface Damage {
  topic: string;
  partition: number;
  /** First damaged offset. */
  fromOffset: number;
  /** First offset after the damage. */
  resumeOffset: number;
  /** The file and its damaged bytes. */
  file: string;
  position: number;
  length: number;
  reason: string;
}

/** Report of `openLog`. */
export interface RecoveryReport {
  durationMs: number;
  topics: number;
  partitions: number;
  /** Partitions with journal entries after the checkpoint. */
  dirtyPartitions: number;
  /** Journal bytes read. */
  journalBytes: number;
  /** Bytes of a torn tail that was never acknowledged and was cut off. */
  cutBytes: number;
  /** Damage below the durable end. If not empty, acknowledged data may be missing. */
  quarantined: readonly Quarantine[];
  /** Damage to one of two copies: no data is missing. */
  healed: readonly Quarantine[];
  /** Unreferenced files that were moved to the quarantine. */
  setAside: readonly string[];
  leaderEpoch: number;
}

/** Result of `checkLog` and `repairLog`. */
export interface CheckReport {
  /** True if no damage was found. */
  isWhole: boolean;
  /** True if the log can be opened without a repair. */
  opens: boolean;
  topics: number;
  partitions: number;
  /** Bytes of intact batches in segments. */
  bytes: number;
  /** Segments in the object store, and whether their objects were looked for. */
  objects: { count: number; bytes: number; isChecked: boolean };
  /** Damage that may mean missing data. */
  damaged: Quarantine[];
  /** Damage to one of two copies. */
  healed: Quarantine[];
}

/** Figures for metrics. */
export interface LogStats {
  topics: number;
  partitions: number;
  entries: number;
  groups: number;
  appendedBytes: number;
  pendingBytes: number;
  tailBytes: number;
  journalBytes: number;
  openFiles: number;
  /** Free bytes of the disk, at most about a second old. */
  diskFreeBytes: number;
  /** Bytes that appends leave free. */
  diskReserveBytes: number;
  /** Appends are refused because less than the reserve is free. */
  diskFull: boolean;
  /** Damage found at startup and since, including damage repaired from a second copy. */
  damageFound: number;
  /** Damaged ranges of offsets that cannot be read. */
  damagedRanges: number;
  quarantineFiles: number;
  quarantineBytes: number;
  state: "open" | "read-only" | "closed";
}

/** The state of the offload, for status and metrics. Sizes in bytes, times in epoch milliseconds. */
export interface OffloadStatus {
  /** Segments whose records are in an object, with or without a local copy. */
  remoteSegments: number;
  remoteBytes: number;
  /** Closed segments of topics with `offload` that have no object yet. */
  pendingSegments: number;
  pendingBytes: number;
  oldestPendingAtMs: number | undefined;
  lastUploadAtMs: number | undefined;
  lastError: { operation: OffloadOperation; code: string; atMs: number } | undefined;
  cacheBytes: number;
  /** Objects that wait for their removal. */
  waitingRemovals: number;
  unknownObjects: number;
  uploads: { ok: number; failed: number };
  uploadedBytes: number;
  reads: { cache: number; store: number };
  removals: { ok: number; failed: number };
  /** Failures by operation and code, as `operation code`. */
  errors: ReadonlyMap<string, number>;
}

/** A file of a snapshot: its path relative to the log's folder, with `/` as separator, and its size in bytes. */
export interface SnapshotFile {
  path: string;
  bytes: number;
  /** Reads the file from its start, in pieces. May be called until `release`. */
  read: () => AsyncGenerator<Buffer>;
}

/** Snapshot of an open log. */
export interface LogSnapshot {
  topics: number;
  partitions: number;
  /** The end of the journal: everything before it is in the files. */
  journal: { file: number; position: number };
  files: readonly SnapshotFile[];
  /** Closes the files and allows their removal. Must be called once. */
  release: () => Promise<void>;
}
