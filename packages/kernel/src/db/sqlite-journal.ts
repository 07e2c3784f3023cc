// Makes commits durable without holding up the thread: syncs SQLite's write-ahead log on a thread of the pool.
import { close, fdatasync, openSync } from "node:fs";
import { DatabaseError } from "./error.ts";

/**
 * The write-ahead log of an open database. With `synchronous = normal` SQLite writes a commit to it and leaves the sync to
 * us (it syncs only where the order of writes matters, at checkpoints). One sync runs at a time; whatever is committed
 * meanwhile shares the next one. The log is written in order, so a sync covers all commits before it, of every process.
 */
export class SqliteJournal {
  readonly #descriptor: number;
  /** Commits so far, and those that the sync under way and the last finished one cover. */
  #written = 0;
  #covered = 0;
  #durable = 0;
  #running: Promise<void> | undefined;
  #failure: DatabaseError | undefined;

  /** Opens the log, which must be there. SQLite keeps no locks on this file, so that closing it drops none. */
  constructor(path: string) {
    this.#descriptor = openSync(path, "r+");
  }

  /** Set for good once a sync has failed. */
  get failure(): DatabaseError | undefined {
    return this.#failure;
  }

  /** Commits that are not known to be on the disk. */
  get pending(): number {
    return this.#written - this.#durable;
  }

  /** Notes a commit that was just written. */
  noteCommit(): void {
    this.#written += 1;
  }

  /** Resolves when all commits so far are on the disk. */
  async settle(): Promise<void> {
    const target = this.#written;
    while (this.#durable < target) {
      if (this.#failure !== undefined) throw this.#failure;
      this.#running ??= this.#sync();
      await this.#running;
    }
  }

  /** Makes durable what there is and closes the file. Nothing may be committed from now on. */
  async close(): Promise<void> {
    // Who waits for a commit that fails is told so; here there is nobody to tell.
    await this.settle().catch(() => undefined);
    await new Promise<void>((resolve) => close(this.#descriptor, () => resolve()));
  }

  #sync(): Promise<void> {
    this.#covered = this.#written;
    return new Promise((resolve) => {
      fdatasync(this.#descriptor, (error) => {
        this.#running = undefined;
        if (error === null) {
          this.#durable = this.#covered;
        } else {
          // The kernel may have dropped the pages that it could not write: a second sync would succeed without them.
          this.#failure = new DatabaseError("unavailable", "commits cannot be made durable", {
            cause: error,
          });
        }
        resolve();
      });
    });
  }
}
