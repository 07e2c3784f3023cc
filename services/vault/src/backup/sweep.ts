// Removes what restores have left that will not continue: hidden buckets, and staged files.
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isHiddenBucket, readHiddenJob } from "../model/bucket.ts";
import { isFinalState } from "../model/job.ts";
import type { BackupParts } from "./other-run.ts";

/** Removes the leftovers of jobs that have ended or were removed. Calls during one are part of it. */
export class RestoreSweep {
  readonly #parts: Pick<BackupParts, "store" | "stagingFolder" | "log">;
  #running: Promise<void> | undefined;
  #isWanted = false;

  constructor(parts: Pick<BackupParts, "store" | "stagingFolder" | "log">) {
    this.#parts = parts;
  }

  /** Starts, or runs once more after a running one. */
  start(): void {
    this.#isWanted = true;
    this.#running ??= this.#run()
      .catch((error: unknown) => {
        // The next start of the service tries again.
        this.#parts.log.warn("the remains of a restore could not be removed", { error });
      })
      .finally(() => {
        this.#running = undefined;
      });
  }

  /** Resolves when nothing runs. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    await this.#running;
  }

  async #run(): Promise<void> {
    const { store, stagingFolder } = this.#parts;
    while (this.#isWanted) {
      this.#isWanted = false;
      const isOver = (id: string): boolean => {
        const job = store.jobs.find(id);
        return job === undefined || isFinalState(job.state);
      };
      for (const name of listFolder(stagingFolder).filter(isOver)) {
        rmSync(join(stagingFolder, name), { recursive: true, force: true });
      }
      const hidden = store.imports.hiddenNames.filter(isHiddenBucket);
      for (const name of hidden.filter((one) => isOver(readHiddenJob(one)))) {
        await store.imports.drop(name);
      }
    }
  }
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // It does not exist before the first restore.
    return [];
  }
}
