// Chunks of objects on the disk. Everything here can be read from the store again.
import { createHash } from "node:crypto";
import { OpenFiles } from "@platform/kernel/files";
import type { Disk, DiskFile } from "../disk/port.ts";

const OPEN_FILES_MAX = 64;

/** A bounded folder of chunks; the least recently used one is removed first. */
export class ChunkCache {
  readonly #disk: Disk;
  readonly #bytesMax: number;
  readonly #files: OpenFiles<DiskFile>;
  /** Sizes by name, least recently used first. */
  readonly #sizes = new Map<string, number>();
  #bytes = 0;

  private constructor(disk: Disk, bytesMax: number) {
    this.#disk = disk;
    this.#bytesMax = bytesMax;
    this.#files = new OpenFiles({
      filesMax: OPEN_FILES_MAX,
      open: (path) => disk.open(path, "read"),
      close: (file) => file.close(),
    });
  }

  /** Lists the chunks of an earlier run; an unreadable folder counts as empty. */
  static async open(disk: Disk, bytesMax: number): Promise<ChunkCache> {
    const cache = new ChunkCache(disk, bytesMax);
    const names = await disk.list("").catch(() => []);
    for (const name of names) {
      if (name.endsWith(".new")) await disk.remove(name).catch(() => undefined);
      if (!/^[0-9a-f]{32}-\d+\.chunk$/.test(name)) continue;
      const bytes = await disk.size(name).catch(() => undefined);
      if (bytes !== undefined) cache.#add(name, bytes);
    }
    await cache.#trim();
    return cache;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Copies bytes of a chunk of `chunkBytes`; false if the cache does not have it whole. */
  async read(
    name: string,
    chunkBytes: number,
    { into, at, length, position }: { into: Buffer; at: number; length: number; position: number },
  ): Promise<boolean> {
    const bytes = this.#sizes.get(name);
    if (bytes === undefined) return false;
    if (bytes === chunkBytes) {
      this.#sizes.delete(name);
      this.#sizes.set(name, bytes);
      try {
        const lease = await this.#files.use(name);
        try {
          if ((await lease.file.read(into, at, length, position)) === length) return true;
        } finally {
          lease.release();
        }
      } catch {
        // Somebody emptied the folder, or the disk is damaged: the store has the bytes.
      }
    }
    await this.remove(name);
    return false;
  }

  has(name: string): boolean {
    return this.#sizes.has(name);
  }

  /** Stores a chunk if the disk allows it. Does not reject. */
  async put(name: string, chunk: Buffer): Promise<void> {
    if (chunk.length > this.#bytesMax || this.#sizes.has(name)) return;
    try {
      const file = await this.#create(`${name}.new`);
      try {
        await file.write([chunk], 0);
      } finally {
        await file.close();
      }
      await this.#disk.rename(`${name}.new`, name);
      this.#add(name, chunk.length);
    } catch {
      await this.#disk.remove(`${name}.new`).catch(() => undefined);
    }
    await this.#trim();
  }

  /** Removes a chunk. Does not reject. */
  async remove(name: string): Promise<void> {
    const bytes = this.#sizes.get(name);
    if (bytes === undefined) return;
    this.#sizes.delete(name);
    this.#bytes -= bytes;
    this.#files.forget(name);
    await this.#disk.remove(name).catch(() => undefined);
  }

  /** Removes the oldest chunks until at most `bytesMax` are left. */
  async shrink(bytesMax: number): Promise<void> {
    for (const name of this.#sizes.keys()) {
      if (this.#bytes <= bytesMax) return;
      await this.remove(name);
    }
  }

  async close(): Promise<void> {
    await this.#files.close();
  }

  // The folder may have been removed.
  async #create(path: string): Promise<DiskFile> {
    try {
      return await this.#disk.open(path, "create");
    } catch {
      await this.#disk.makeFolder("");
      return this.#disk.open(path, "create");
    }
  }

  #add(name: string, bytes: number): void {
    this.#sizes.set(name, bytes);
    this.#bytes += bytes;
  }

  #trim(): Promise<void> {
    return this.shrink(this.#bytesMax);
  }
}

/** The file name of a chunk. */
export function chunkName(object: string, index: number): string {
  return `${createHash("sha256").update(object).digest("hex").slice(0, 32)}-${index}.chunk`;
}
