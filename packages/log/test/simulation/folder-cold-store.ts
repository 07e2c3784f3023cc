// An object store in a folder, for processes that are killed and for golden files.
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ColdStoreError, type ColdStore } from "../../src/index.ts";

const PART_BYTES = 256 * 1024;

/** Objects as files; one appears whole or not at all. */
export class FolderColdStore implements ColdStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async put(object: string, source: Parameters<ColdStore["put"]>[1]): Promise<void> {
    const path = join(this.#folder, object);
    await mkdir(dirname(path), { recursive: true });
    const file = await open(`${path}.part`, "w");
    try {
      for (let at = 0; at < source.bytes; at += PART_BYTES) {
        await file.write(await source.read(at, Math.min(PART_BYTES, source.bytes - at)));
      }
    } finally {
      await file.close();
    }
    await rename(`${path}.part`, path);
  }

  async read(object: string, start: number, target: Buffer): Promise<void> {
    let file;
    try {
      file = await open(join(this.#folder, object), "r");
    } catch (cause) {
      throw new ColdStoreError("missing", object, { cause, isMissing: true });
    }
    try {
      const { bytesRead } = await file.read(target, 0, target.length, start);
      if (bytesRead < target.length) throw new ColdStoreError("short", object);
    } finally {
      await file.close();
    }
  }

  async remove(object: string): Promise<void> {
    await rm(join(this.#folder, object), { force: true });
    await rm(join(this.#folder, `${object}.part`), { force: true });
  }

  async head(object: string): Promise<number | undefined> {
    return stat(join(this.#folder, object)).then(
      ({ size }) => size,
      () => undefined,
    );
  }

  async *list(prefix: string) {
    const entries = await readdir(this.#folder, { recursive: true, withFileTypes: true });
    for (const entry of entries) {
      if (!entry.isFile() || entry.name.endsWith(".part")) continue;
      const path = join(entry.parentPath, entry.name);
      const object = path.slice(this.#folder.length + 1).replaceAll("\\", "/");
      if (!object.startsWith(prefix)) continue;
      const { size, mtimeMs } = await stat(path);
      yield { object, bytes: size, modifiedMs: mtimeMs };
    }
  }
}
