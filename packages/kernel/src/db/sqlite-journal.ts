// Makes commits durable without blocking the thread: syncs SQLite's write-ahead log on the thread pool.
import { close, fdatasync, openSync } from "node:fs";
import { DatabaseError } from "./error.ts";

/**
 * The write-ahead log of an open database. With `synchronous = normal` SQLite only writes commits to the log and leaves
 * the sync to the application (it syncs only at checkpoints, to order writes). One sync runs at a time; commits that
 * arrive meanwhile share the next one. The log is written sequentially, so a sync covers all earlier commits of all
 * processes.
 */
export class SqliteJournal {
  readonly #descriptor: number;
  /** Number of commits written so far, covered by the sync in flight, and covered by the last finished sync. */
  #written = 0;
  #covered = 0;
  #durable = 0;
  #running: Promise<void> | undefined;
  #failure: DatabaseError | undefined;

  readonly #capture: () => () => void;

  /**
   * Opens the log, which must exist. SQLite holds no locks on this file, so closing it releases none. `capture` is called
   * before a sync, and what it returns after it.
   */
  constructor(path: string, capture: () => () => void) {
    this.#descriptor = openSync(path, "r+");
    this.#capture = capture;
  }

  /** Set permanently after a failed sync. */
  get failure(): DatabaseError | undefined {
    return this.#failure;
  }

  /** Number of commits that are not yet known to be on disk. */
  get pending(): number {
    return this.#written - this.#durable;
  }

  /** Records a written commit. */
  noteCommit(): void {
    this.#written += 1;
  }

  /** Resolves when all commits so far are on disk. */
  async settle(): Promise<void> {
    const target = this.#written;
    while (this.#durable < target) {
      if (this.#failure !== undefined) throw this.#failure;
      this.#running ??= this.#sync();
      await this.#running;
    }
  }

  /** Syncs pending commits and closes the file. No commits may follow. */
  async close(): Promise<void> {
    // The waiting writers receive the error.
    await this.settle().catch(() => undefined);
    await new Promise<void>((resolve) => close(this.#descriptor, () => resolve()));
  }

  #sync(): Promise<void> {
    this.#covered = this.#written;
    const noteDurable = this.#capture();
    return new Promise((resolve) => {
      fdatasync(this.#descriptor, (error) => {
        this.#running = undefined;
        if (error === null) {
          this.#durable = this.#covered;
          noteDurable();
        } else {
          // The kernel may have dropped the dirty pages after the error: a second sync would succeed without them.
          this.#failure = new DatabaseError("unavailable", "commits cannot be made durable", {
            cause: error,
          });
        }
        resolve();
      });
    });
  }
}
