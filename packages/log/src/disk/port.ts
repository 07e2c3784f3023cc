// What the log needs of a disk and of a clock. Real ones are in `node-disk.ts`; a simulator
// implements the same to inject failures and to build the states that a crash can leave behind.

/**
 * An open file. All positions and lengths in bytes. Failures reject with an `Error` whose `code`
 * is the operating system's (`ENOSPC`, `EIO`, …).
 */
export type DiskFile = {
  /** Reads up to `length` bytes into `into` at `at`; fewer only at the end of the file. */
  read(into: Buffer, at: number, length: number, position: number): Promise<number>;
  /** Writes all buffers one after another from `position` on. What a failure left is undefined. */
  write(buffers: readonly Buffer[], position: number): Promise<void>;
  /** Returns when contents and length are on the medium (fdatasync). */
  sync(): Promise<void>;
  truncate(length: number): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
};

/** Bytes of the file system that holds the root. */
export type DiskSpace = { freeBytes: number; totalBytes: number };

/** A file system below one root; paths are relative to it and use `/`. */
export type Disk = {
  /** Opens for reading and writing. `create` makes it anew, empty, also where one exists. */
  open(path: string, mode: "read" | "write" | "create"): Promise<DiskFile>;
  /** Makes a folder and its parents; an existing one is fine. Durable after `syncFolder` of each. */
  makeFolder(path: string): Promise<void>;
  /** Names in a folder; empty where there is none. */
  list(path: string): Promise<string[]>;
  /** Bytes of a file; undefined if there is none. */
  size(path: string): Promise<number | undefined>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file; a missing one is fine. */
  remove(path: string): Promise<void>;
  /** Removes an empty folder; a missing or a filled one is fine. */
  removeFolder(path: string): Promise<void>;
  /** Makes creations, renames and removals in the folder durable. */
  syncFolder(path: string): Promise<void>;
  /** The space that is left for this process, and all there is. */
  space(): Promise<DiskSpace>;
  /**
   * Takes the exclusive lock of the root until released. Rejects with `LogError` `locked` if another process holds it,
   * `disk-full` or `disk-failed` if the lock file cannot be written.
   */
  lock(): Promise<() => Promise<void>>;
};

/** Wall clock and timers. */
export type Clock = {
  /** Epoch milliseconds. */
  now(): number;
  /** Calls `run` after `ms` milliseconds; the returned function cancels it. Keeps no process alive. */
  after(ms: number, run: () => void): () => void;
};
