// The quarantine folder: copies of damaged ranges, and unreferenced files.
import type { Disk } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import type { Quarantine } from "../types.ts";

/** The folder. The log never deletes from it. */
const QUARANTINE_FOLDER = "quarantine";
/** Bytes per copy step. */
const COPY_BYTES = 1024 * 1024;

/** Number and total size of the files in the quarantine. */
export interface QuarantineSize {
  files: number;
  bytes: number;
}

/** Copies or moves unusable data into the quarantine, up to a bound. */
export class QuarantineStore {
  readonly #disk: Disk;
  readonly #bytesMax: number;
  readonly #names = new Set<string>();
  #bytes = 0;

  private constructor(disk: Disk, bytesMax: number) {
    this.#disk = disk;
    this.#bytesMax = bytesMax;
  }

  /** Lists the current contents of the quarantine. */
  static async open(disk: Disk, bytesMax: number): Promise<QuarantineStore> {
    const store = new QuarantineStore(disk, bytesMax);
    for (const name of await disk.list(QUARANTINE_FOLDER)) {
      store.#names.add(name);
      store.#bytes += (await disk.size(`${QUARANTINE_FOLDER}/${name}`)) ?? 0;
    }
    return store;
  }

  get size(): QuarantineSize {
    return { files: this.#names.size, bytes: this.#bytes };
  }

  /** Copies a range of a file, once. Missing files are skipped. */
  async copy({ file, position, length }: Quarantine): Promise<void> {
    const bytes = Math.max(0, Math.min(length, ((await this.#disk.size(file)) ?? 0) - position));
    const name = `${flatten(file)}-${position}`;
    if (bytes === 0) return;
    if (
      this.#names.has(name) &&
      (await this.#disk.size(`${QUARANTINE_FOLDER}/${name}`)) === bytes
    ) {
      return;
    }
    await this.#reserve(file, bytes);
    const free = this.#freeName(name);
    const source = await this.#disk.open(file, "read");
    try {
      const target = await this.#disk.open(`${QUARANTINE_FOLDER}/${free}`, "create");
      try {
        for (let done = 0; done < bytes;) {
          const chunk = Buffer.alloc(Math.min(COPY_BYTES, bytes - done));
          const count = await source.read(chunk, 0, chunk.length, position + done);
          if (count === 0) break;
          await target.write([chunk.subarray(0, count)], done);
          done += count;
        }
        await target.sync();
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
    await this.#disk.syncFolder(QUARANTINE_FOLDER);
    this.#add(free, bytes);
  }

  /** Moves a file. Missing files are skipped. */
  async move(file: string): Promise<void> {
    const bytes = await this.#disk.size(file);
    if (bytes === undefined) return;
    await this.#reserve(file, bytes);
    const free = this.#freeName(flatten(file));
    await this.#disk.rename(file, `${QUARANTINE_FOLDER}/${free}`);
    await this.#disk.syncFolder(QUARANTINE_FOLDER);
    await this.#disk.syncFolder(file.slice(0, Math.max(0, file.lastIndexOf("/"))));
    this.#add(free, bytes);
  }

  async #reserve(file: string, bytes: number): Promise<void> {
    if (this.#bytes + bytes > this.#bytesMax) {
      throw new LogError(
        "quarantine-full",
        `${file} (${bytes} bytes) has to go to the folder ${QUARANTINE_FOLDER}, which holds ` +
          `${this.#bytes} of at most ${this.#bytesMax} bytes; nothing is deleted by itself: ` +
          "move its files elsewhere, or raise the bound",
      );
    }
    await this.#disk.makeFolder(QUARANTINE_FOLDER);
    await this.#disk.syncFolder("");
  }

  #freeName(name: string): string {
    if (!this.#names.has(name)) return name;
    for (let suffix = 2; ; suffix++) {
      if (!this.#names.has(`${name}.${suffix}`)) return `${name}.${suffix}`;
    }
  }

  #add(name: string, bytes: number): void {
    this.#names.add(name);
    this.#bytes += bytes;
  }
}

function flatten(path: string): string {
  return path.replaceAll("/", "-");
}
