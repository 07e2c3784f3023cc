// Space that a database keeps on its disk, to give it up when the disk is full.
import { rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** The disk must have this many times the reserve free before it is taken. */
const FREE_FACTOR = 2;

/** The reserve of one file. */
export class DiskReserve {
  readonly #path: string;
  readonly #bytes: number;

  constructor(path: string, bytes: number) {
    this.#path = `${path}.reserve`;
    this.#bytes = bytes;
  }

  /** True if the reserve was given up and could not be taken again yet. */
  get isReleased(): boolean {
    return this.#bytes > 0 && statSync(this.#path, { throwIfNoEntry: false })?.size !== this.#bytes;
  }

  /** Gives the space up. */
  release(): void {
    if (this.#bytes > 0) rmSync(this.#path, { force: true });
  }

  /** Takes the space if the disk has enough. */
  take(): void {
    if (!this.isReleased) return;
    const { bavail, bsize } = statfsSync(dirname(this.#path));
    if (bavail * bsize < FREE_FACTOR * this.#bytes) return;
    try {
      writeFileSync(this.#path, Buffer.alloc(this.#bytes), { mode: 0o600 });
    } catch {
      rmSync(this.#path, { force: true });
    }
  }
}
