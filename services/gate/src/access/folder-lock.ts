// The lock of the gateway's state folder: two processes that write the same files would lose each other's changes.
import { join } from "node:path";
import { PlatformError } from "@platform/kernel/errors";
import { FileLockedError, lockFile } from "@platform/kernel/files";
import { makeFolder } from "./durable-file.ts";

/** The lock of one process. It is taken at the first change, not at the start: a folder that is only read is not locked. */
export class FolderLock {
  readonly #folder: string;
  readonly #isEphemeral: boolean;
  #unlock: (() => void) | undefined;
  #taking: Promise<void> | undefined;

  /** With `isEphemeral` nothing is written, and nothing is locked. */
  constructor(folder: string, isEphemeral: boolean) {
    this.#folder = folder;
    this.#isEphemeral = isEphemeral;
  }

  /**
   * Takes the lock unless this process has it. What was read before is out of date if another process has written since.
   * Throws `conflict` if another process has it, or if the folder is not writable.
   */
  async take(): Promise<void> {
    if (this.#isEphemeral || this.#unlock !== undefined) return;
    // A second take in this process must not find the lock of the first one.
    this.#taking ??= this.#take().finally(() => (this.#taking = undefined));
    await this.#taking;
  }

  async #take(): Promise<void> {
    try {
      await makeFolder(this.#folder);
      this.#unlock = lockFile(join(this.#folder, "lock"));
    } catch (cause) {
      const reason =
        cause instanceof FileLockedError
          ? "is used by another gateway; set PLATFORM_GATE_DATA_DIR to a folder of its own"
          : "is not writable; make it writable, or start the gateway with --ephemeral";
      throw new PlatformError("conflict", `the folder ${this.#folder} ${reason}`, { cause });
    }
  }

  /** Releases the folder for another process. */
  release(): void {
    this.#unlock?.();
    this.#unlock = undefined;
  }
}
