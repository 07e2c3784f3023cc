// The ports for disk and clock. `node-disk.ts` implements them; a simulator in the tests injects failures and builds
// the states that a crash can leave behind.

/**
 * An open file. All positions and lengths in bytes. Failures reject with an `Error` whose `code` is that of the
 * operating system (`ENOSPC`, `EIO`, …).
 */
export interface DiskFile {
  /** Reads up to `length` bytes into `into` at `at`; fewer only at the end of the file. */
  read(into: Buffer, at: number, length: number, position: number): Promise<number>;
  /** Writes all buffers one after another from `position` on. A failed write leaves undefined contents. */
  write(buffers: readonly Buffer[], position: number): Promise<void>;
  /** Like `write`; resolves when these bytes and the length are on the medium. */
  writeDurably(buffers: readonly Buffer[], position: number): Promise<void>;
  /** Resolves when contents and length are on the medium (fdatasync). */
  sync(): Promise<void>;
  truncate(length: number): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}

/** Free and total bytes of the file system that holds the root. */
export interface DiskSpace {
  freeBytes: number;
  totalBytes: number;
}

/** A file system below one root; paths are relative to it and use `/`. */
export interface Disk {
  /** Opens a file for reading and writing. `create` truncates an existing file. */
  open(path: string, mode: "read" | "write" | "create"): Promise<DiskFile>;
  /** Creates a folder and its parents if they are missing. Durable after `syncFolder` of each. */
  makeFolder(path: string): Promise<void>;
  /** Names in a folder; empty if it does not exist. */
  list(path: string): Promise<string[]>;
  /** Size of a file; `undefined` if it does not exist. */
  size(path: string): Promise<number | undefined>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file if it exists. */
  remove(path: string): Promise<void>;
  /** Removes a folder if it exists and is empty. */
  removeFolder(path: string): Promise<void>;
  /** Makes creations, renames and removals in the folder durable. */
  syncFolder(path: string): Promise<void>;
  /** Free space for this process, and total space. */
  space(): Promise<DiskSpace>;
  /**
   * Locks the root exclusively until the returned function is called. Rejects with the `LogError` `locked` if another
   * process holds the lock, `disk-full` or `disk-failed` if the lock file cannot be written.
   */
  lock(): Promise<() => Promise<void>>;
}

/** Wall clock and timers. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `run` after `ms` milliseconds; the returned function cancels the call. Does not keep the process alive. */
  after(ms: number, run: () => void): () => void;
}
