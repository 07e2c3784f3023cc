// Copies the index of a single drive periodically, as a source for repairs.
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { syncFolder, type StoreFolders } from "../disk/files.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import type { CopyData, CopyFindings } from "./index-copy-thread.ts";
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
  #findings: readonly string[] = [];
  #running: Promise<readonly string[]> | undefined;
  #worker: Worker | undefined;

  constructor(folders: StoreFolders, freeSpace: FreeSpace) {
    this.#folders = folders;
    this.#freeSpace = freeSpace;
  }

  get state(): IndexCopyState {
    const found = statSync(this.#folders.indexCopy, { throwIfNoEntry: false });
    return { copiedMs: found?.mtimeMs, findings: this.#findings };
  }

  /** Copies the index and checks every row of the copy. Resolves to the damage. */
  run(): Promise<readonly string[]> {
    this.#running ??= this.#copy().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Aborts a running copy. */
  async stop(): Promise<void> {
    await this.#worker?.terminate();
    await this.#running?.catch(() => undefined);
  }

  async #copy(): Promise<readonly string[]> {
    const { index, indexCopy, root } = this.#folders;
    this.#freeSpace.require(measureIndex(index));
    const staged = `${indexCopy}.new`;
    for (const ending of ["", "-journal"]) rmSync(`${staged}${ending}`, { force: true });
    try {
      this.#findings = await this.#runThread({ from: index, to: staged });
      if (this.#findings.length === 0) {
        renameSync(staged, indexCopy);
        await syncFolder(root);
      }
    } finally {
      if (existsSync(staged)) rmSync(staged);
    }
    return this.#findings;
  }

  #runThread(data: CopyData): Promise<readonly string[]> {
    const worker = new Worker(new URL("./index-copy-thread.ts", import.meta.url), {
      workerData: data,
    });
    this.#worker = worker;
    return new Promise<readonly string[]>((resolve, reject) => {
      worker.once("message", (findings: CopyFindings) => resolve(findings));
      worker.once("error", reject);
      worker.once("exit", () => reject(new Error("the copy of the index was not completed")));
    });
  }
}
