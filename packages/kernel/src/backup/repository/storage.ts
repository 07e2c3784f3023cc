// The place of a repository: named objects of at most a few MiB, written as a whole or not at all.
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { FileLockedError, lockFile } from "../../files/file-lock.ts";
import { syncFolder } from "../../files/replace-file.ts";
import { BackupError } from "../error.ts";
import { type Digest, digestFile, readBytes, writeBytes } from "../files.ts";

/** Mode of the folders of a repository. */
export const FOLDER_MODE = 0o700;
const TEMPORARY = "tmp";
const LOCK = "lock";

/** Keeps the objects of a repository. Names are relative paths with `/` as separator. */
export interface RepositoryStorage {
  /** The place in messages. */
  readonly place: string;
  /** The folder in which threads may write objects by themselves; missing if there is none. */
  readonly folder?: string;
  /** Notes that an object was written by a thread, or found: it is on disk after the next `flush`. */
  noteWritten?(name: string): void;
  /** An object; `undefined` if it is missing. Rejects with BackupError if it has more than `bytesMax` bytes. */
  read(name: string, bytesMax: number): Promise<Buffer | undefined>;
  /** Size and hash of an object; `undefined` if it is missing. Reads at most one byte more than `bytes`. */
  digest(name: string, bytes: number): Promise<Digest | undefined>;
  /** The size of an object in bytes; `undefined` if it is missing. */
  measure(name: string): Promise<number | undefined>;
  /** Adds or replaces an object. It is on disk after the next `flush`, and until then whole or missing. */
  write(name: string, bytes: Buffer): Promise<void>;
  /** Resolves when everything written or removed before is durable. */
  flush(): Promise<void>;
  /** The names of all objects below a folder. */
  list(folder: string): AsyncIterable<string>;
  /** Removes an object, if it exists. */
  remove(name: string): Promise<void>;
  /** Keeps other writers away. Rejects with BackupError if there is one. Returns a function that ends it. */
  lock(): Promise<() => void | Promise<void>>;
}

/** A repository in a folder, which is created by the first write. */
export class FolderStorage implements RepositoryStorage {
  readonly place: string;
  readonly #unsynced = new Set<string>();
  readonly #made = new Set<string>();
  #drafts = 0;

  constructor(folder: string) {
    this.place = folder;
  }

  read(name: string, bytesMax: number): Promise<Buffer | undefined> {
    return explainRead(name, readBytes(join(this.place, name), bytesMax));
  }

  digest(name: string, bytes: number): Promise<Digest | undefined> {
    return explainRead(
      name,
      digestFile(join(this.place, name), bytes, () => undefined),
    );
  }

  async measure(name: string): Promise<number | undefined> {
    return (await stat(join(this.place, name)).catch(ignoreMissing))?.size;
  }

  async write(name: string, bytes: Buffer): Promise<void> {
    const path = join(this.place, name);
    this.#drafts += 1;
    const draft = join(this.place, nameDraft(0, this.#drafts));
    try {
      await this.#make(dirname(path));
      await this.#make(dirname(draft));
      await rm(draft, { force: true });
      await writeBytes(draft, bytes);
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true }).catch(() => undefined);
      throw explainFault(this.place, "written", error);
    }
    this.#unsynced.add(dirname(path));
  }

  get folder(): string {
    return this.place;
  }

  // Its folders may be new.
  noteWritten(name: string): void {
    for (let at = dirname(name); at !== "."; at = dirname(at))
      this.#unsynced.add(join(this.place, at));
    this.#unsynced.add(this.place);
  }

  async flush(): Promise<void> {
    const folders = [...this.#unsynced];
    this.#unsynced.clear();
    await Promise.all(folders.map((folder) => syncFolder(folder))).catch((error: unknown) => {
      throw explainFault(this.place, "written", error);
    });
  }

  async *list(folder: string): AsyncGenerator<string> {
    const entries = await readdir(join(this.place, folder), { withFileTypes: true }).catch(
      ignoreMissing,
    );
    for (const entry of entries ?? []) {
      const name = `${folder}/${entry.name}`;
      if (entry.isDirectory()) yield* this.list(name);
      else yield name;
    }
  }

  async remove(name: string): Promise<void> {
    const path = join(this.place, name);
    await rm(path, { force: true });
    this.#unsynced.add(dirname(path));
  }

  // Nothing else is written there meanwhile: drafts in it are those of a killed writer.
  async lock(): Promise<() => void> {
    let unlock: () => void;
    try {
      await this.#make(this.place);
      unlock = lockFile(join(this.place, LOCK));
    } catch (error) {
      if (!(error instanceof FileLockedError)) throw explainFault(this.place, "locked", error);
      throw new BackupError(`another backup writes to ${this.place}`, { cause: error });
    }
    await rm(join(this.place, TEMPORARY), { recursive: true, force: true });
    return unlock;
  }

  // A new folder is an entry of its parent, up to the one that existed.
  async #make(folder: string): Promise<void> {
    if (this.#made.has(folder)) return;
    const first = await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
    this.#made.add(folder);
    if (first === undefined) return;
    for (let at = folder; at.length >= first.length; at = dirname(at)) {
      this.#unsynced.add(dirname(at));
    }
  }
}

/** The name of an object of thread `thread` until it is complete. */
export function nameDraft(thread: number, number: number): string {
  return `${TEMPORARY}/${process.pid}-${thread}-${number}`;
}

/** The error of a fault of the disk: the operator can do something about a full or read-only one. Others stay as they are. */
export function explainFault(place: string, done: string, cause: unknown): unknown {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (typeof code !== "string") return cause;
  return new BackupError(`${place} cannot be ${done}: ${message}`, { cause });
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT" || error.code === "ENOTDIR") return;
  throw error;
}

/** Resolves to undefined for a missing file; other faults of a file are damage of the repository. */
export async function explainRead<T>(name: string, work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    if (code === "ELOOP" || code === "EISDIR") throw new BackupError(`${name}: not a file`);
    if (code === "EIO") throw new BackupError(`${name}: cannot be read (EIO)`);
    throw error;
  }
}
