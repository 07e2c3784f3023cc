// Folders of a backup that are restored to places of their own, such as other disks, which a rename cannot reach.
import { mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { BackupError } from "./error.ts";
import { syncFolder } from "../files/index.ts";
import { FolderTree } from "./files.ts";

/** A folder of a backup that is restored elsewhere. */
export interface Elsewhere {
  /** Its path in the backup, with `/` as separator. */
  path: string;
  /** Folder to restore into; must exist and be empty, and may be the root of a file system. */
  target: string;
  /** File that makes the folder valid; it is moved to the target after all others. */
  last: string;
  /** Completes the staged folder before it is moved. */
  complete?: (folder: string) => Promise<void>;
}

/** Entries of a new file system. */
const IGNORED = new Set(["lost+found"]);
const STAGED_PREFIX = ".restoring-";

/** True if a path of the backup is below the folder. */
export function isBelow(path: string, { path: folder }: Elsewhere): boolean {
  return path.startsWith(`${folder}/`);
}

/** Stages files inside each target, and moves them to their final names when everything is restored. */
export class StagedFolders {
  readonly #places: readonly { place: Elsewhere; staged: string; tree: FolderTree }[];
  readonly #moved: string[] = [];

  private constructor(places: readonly { place: Elsewhere; staged: string; tree: FolderTree }[]) {
    this.#places = places;
  }

  /** Creates the staging folders. Rejects with BackupError if a target is missing or not empty. */
  static async create(elsewhere: readonly Elsewhere[]): Promise<StagedFolders> {
    for (const { target } of elsewhere) await requireEmpty(target);
    const places = [];
    for (const place of elsewhere) {
      const staged = await mkdtemp(join(resolve(place.target), STAGED_PREFIX));
      places.push({ place, staged, tree: new FolderTree(staged) });
    }
    return new StagedFolders(places);
  }

  /** Creates the folders of a file's path; returns its full path, or undefined if it belongs to no place. */
  async prepare(path: string): Promise<string | undefined> {
    const found = this.#places.find(({ place }) => isBelow(path, place));
    return found?.tree.prepare(path.slice(found.place.path.length + 1));
  }

  /** Syncs all folders. */
  async sync(): Promise<void> {
    for (const { tree } of this.#places) await tree.sync();
  }

  /** Moves everything to its final name, in each target the file `last` at the end. */
  async publish(): Promise<void> {
    for (const { place, staged } of this.#places) await place.complete?.(staged);
    for (const { place, staged } of this.#places) {
      const names = (await readdir(staged)).filter((name) => name !== place.last);
      for (const name of names) await this.#move(staged, place.target, name);
      await syncFolder(place.target);
    }
    for (const { place, staged } of this.#places) {
      await this.#move(staged, place.target, place.last);
      await rm(staged, { recursive: true });
      await syncFolder(place.target);
    }
  }

  /** Undoes an incomplete restore. */
  async remove(): Promise<void> {
    for (const path of [...this.#moved, ...this.#places.map(({ staged }) => staged)]) {
      await rm(path, { recursive: true, force: true });
    }
  }

  async #move(staged: string, target: string, name: string): Promise<void> {
    const path = join(target, name);
    await rename(join(staged, name), path);
    this.#moved.push(path);
  }
}

async function requireEmpty(target: string): Promise<void> {
  const names = await readdir(target).catch((cause: NodeJS.ErrnoException) => {
    const text = cause.code === "ENOENT" ? "is missing: create it" : cause.message;
    throw new BackupError(`${target} ${text}`, { cause });
  });
  if (names.every((name) => IGNORED.has(name))) return;
  throw new BackupError(`${target} is not empty; empty it to restore into it`);
}
