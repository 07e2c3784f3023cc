// Builds the filters of keys of closed segments, one segment at a time.
import type { Catalogue } from "../catalogue/catalogue.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import { isDiskFull } from "../disk/disk-error.ts";
import type { KeyIndex } from "../segment/key-index.ts";

/** Options of a `KeyIndexer`. */
export interface KeyIndexerOptions {
  catalogue: Catalogue;
  keyIndex: KeyIndex;
  space: FreeSpace;
}

/** Runs one pass at a time. */
export class KeyIndexer {
  readonly #options: KeyIndexerOptions;
  #isStopped = false;
  #running: Promise<void> | undefined;

  constructor(options: KeyIndexerOptions) {
    this.#options = options;
  }

  /** Builds what is missing, or joins the pass that does. */
  run(): Promise<void> {
    this.#running ??= this.#pass().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Stops within a batch. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #pass(): Promise<void> {
    const { catalogue, keyIndex, space } = this.#options;
    for (const partition of catalogue.partitions()) {
      if (!partition.topic.config.keyIndex) continue;
      for (const extent of partition.extents.slice()) {
        // Filters are not worth what is left of a full disk.
        if (this.#isStopped || space.isFull) return;
        if (!keyIndex.lacks(partition, extent)) continue;
        try {
          await keyIndex.build(partition, extent, () => this.#isStopped);
        } catch (error) {
          if (isDiskFull(error)) return;
          throw error;
        }
      }
    }
  }
}
