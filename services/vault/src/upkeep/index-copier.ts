// Copies the index of a single drive periodically, as a source for repairs.
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { syncFolder } from "@platform/kernel/files";
import type { StoreFolders } from "../disk/files.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import type { CopyFindings } from "./index-copy-thread.ts";
import type { PageCopy } from "../index/copy-pages.ts";
import { measureIndex } from "../index/inspect.ts";

/** The state of the copy. */
export interface IndexCopyState {
  /** Time of the last copy, epoch ms; `undefined` if there is none. */
  copiedMs: number | undefined;
  /** Damage of the index that the last copy found. */
  findings: readonly string[];
}

/** Makes copies, one at a time. A copy of a damaged index never replaces an intact one. */
export class IndexCopier {
  readonly #folders: StoreFolders;
  readonly #freeSpace: FreeSpace;
  readonly #logBytesMax: number;
  #findings: readonly string[] = [];

  /** `logBytesMax` limits the log of the index while it is copied. */
  constructor(folders: StoreFolders, freeSpace: FreeSpace, logBytesMax: number) {
    this.#folders = folders;
    this.#freeSpace = freeSpace;
    this.#logBytesMax = logBytesMax;
  }

  get state(): IndexCopyState {
    const found = statSync(this.#folders.indexCopy, { throwIfNoEntry: false });
    return { copiedMs: found?.mtimeMs, findings: this.#findings };
  }

  /** Copies the index and checks every row of the copy. Resolves to the damage; rejects if it is aborted. */
  async run(signal: AbortSignal): Promise<readonly string[]> {
    const { index, indexCopy, root } = this.#folders;
    this.#freeSpace.require(measureIndex(index));
    const staged = `${indexCopy}.new`;
    for (const ending of ["", "-journal"]) rmSync(`${staged}${ending}`, { force: true });
    try {
      const logBytesMax = this.#logBytesMax;
      this.#findings = await copyInThread({ from: index, to: staged, logBytesMax }, signal);
      if (this.#findings.length === 0) {
        renameSync(staged, indexCopy);
        await syncFolder(root);
      }
    } finally {
      if (existsSync(staged)) rmSync(staged);
    }
    return this.#findings;
  }
}

/** Copies an index in use to a new file, and checks every row of the copy. Resolves to the damage. */
export async function copyInThread(
  data: PageCopy,
  stopping: AbortSignal,
): Promise<readonly string[]> {
  const worker = new Worker(new URL("./index-copy-thread.ts", import.meta.url), {
    workerData: data,
  });
  const stop = (): void => void worker.terminate();
  stopping.addEventListener("abort", stop);
  if (stopping.aborted) stop();
  try {
    return await new Promise<readonly string[]>((resolve, reject) => {
      worker.once("message", (findings: CopyFindings) => resolve(findings));
      worker.once("error", reject);
      worker.once("exit", () => reject(new Error("the copy of the index was not completed")));
    });
  } finally {
    stopping.removeEventListener("abort", stop);
  }
}
