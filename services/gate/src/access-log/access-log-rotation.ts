// Rotates the access log and the recording: renames one that is full and has the workers open a new one.
import { rename, stat } from "node:fs/promises";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { AccessLogSpec } from "../shared-state/index.ts";

export interface AccessLogRotationOptions {
  /** Returns the current settings of the logs; undefined for one that no route writes. */
  listSpecs: () => readonly (AccessLogSpec | undefined)[];
  /** Interval between size checks; the file may exceed its limit by the bytes written in this time. */
  intervalMs: number;
  /** Called after a rename: every worker must reopen its logs. */
  onRotated: () => void;
  onError: (error: Error) => void;
}

/**
 * Rotates logs for all workers; runs on the control plane. `access.jsonl` becomes `access.jsonl.1`, which becomes
 * `access.jsonl.2`, up to `filesMax`; the oldest file is replaced.
 */
export class AccessLogRotation {
  readonly #options: AccessLogRotationOptions;
  readonly #timer: RepeatingTimer;

  constructor(options: AccessLogRotationOptions) {
    this.#options = options;
    this.#timer = every(
      options.intervalMs,
      () => this.#checkSizes(),
      (error) => options.onError(error as Error),
    );
  }

  /** Checks the sizes now and rotates if the limit is reached. */
  check(): Promise<void> {
    return this.#timer.run();
  }

  close(): Promise<void> {
    return this.#timer.stop();
  }

  async #checkSizes(): Promise<void> {
    for (const spec of this.#options.listSpecs()) {
      const isFull = spec !== undefined && (await readSize(spec.path)) >= spec.fileBytesMax;
      if (isFull) await this.#rotate(spec);
    }
  }

  async #rotate({ path, filesMax }: AccessLogSpec): Promise<void> {
    for (let age = Math.max(1, filesMax) - 1; age >= 1; age--) {
      await renameIfThere(`${path}.${age}`, `${path}.${age + 1}`);
    }
    await renameIfThere(path, `${path}.1`);
    this.#options.onRotated();
  }
}

async function readSize(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isMissing(error)) return 0;
    throw error;
  }
}

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}
