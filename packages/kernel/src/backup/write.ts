// Writes a backup: first the files, then the manifest, then the folder is renamed to its final name.
import { mkdir, mkdtemp, rename, rm, rmdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { syncFolder } from "../files/index.ts";
import type { BackupKey } from "./cipher.ts";
import { BackupError } from "./error.ts";
import {
  FolderTree,
  isVacant,
  Meter,
  readChunks,
  requireRoom,
  writeBytes,
  writeStream,
  type BackupProgress,
} from "./files.ts";
import {
  BACKUP_FORMAT,
  DATA_FOLDER,
  encodeManifest,
  FILES_MAX,
  findPathProblem,
  hashManifest,
  MANIFEST_NAME,
  type BackupFile,
  type BackupManifest,
  type BackupPart,
} from "./manifest.ts";

/** Space for folders and manifest, in addition to the files. */
const OVERHEAD_BYTES = 16 * 1024 * 1024;

export interface WriteBackupOptions {
  /** Folder of the backup; must be missing or empty. Its parent must exist. */
  folder: string;
  service: string;
  /** Version of the service. */
  version: string;
  /** Version of the service's files; older programs refuse to restore a newer one. */
  dataFormat: number;
  /** Epoch milliseconds. */
  nowMs: number;
  /** Encrypts the files. */
  key?: BackupKey | undefined;
  onProgress?: (progress: BackupProgress) => void;
}

/** Receives the files of a backup. */
export interface BackupTarget {
  /** The folder of the backup while it is incomplete, for its parts. */
  readonly folder: string;
  /** Announces the total size of all files. Rejects with BackupError if the file system has less space. */
  expect(bytes: number): Promise<void>;
  /** Copies a file, or its first `length` bytes. Rejects if the source is shorter. */
  addFile(path: string, source: string, length?: number): Promise<void>;
  /** Adds a complete backup of a service, which is in the folder `name` of `folder`. */
  addPart(name: string, manifest: BackupManifest): void;
}

/**
 * Writes a backup. `fill` adds the files and returns the mark: the point up to which the backup is complete. Until
 * everything is on disk, the folder has a temporary name (`<name>.partial-…`); a failed backup removes it, a killed one
 * leaves it.
 */
export async function writeBackup(
  options: WriteBackupOptions,
  fill: (target: BackupTarget) => Promise<BackupManifest["mark"]>,
): Promise<BackupManifest> {
  return writeFolder(options.folder, async (partial) => {
    const tree = new FolderTree(partial);
    const target = new FolderTarget(options, partial, tree);
    const mark = await fill(target);
    const manifest: BackupManifest = {
      format: BACKUP_FORMAT,
      service: options.service,
      service_version: options.version,
      data_format: options.dataFormat,
      created_at: new Date(options.nowMs).toISOString(),
      mark,
      ...(target.parts.length === 0 ? {} : { parts: target.parts }),
      files: target.files,
    };
    // The files' names must be on disk before the manifest that lists them.
    await tree.sync();
    return options.key === undefined ? manifest : options.key.seal(manifest);
  });
}

/**
 * Writes the folder of a backup under a temporary name; `fill` adds synced files and returns the manifest. On errors the
 * folder is removed.
 */
export async function writeFolder(
  path: string,
  fill: (partial: string) => Promise<BackupManifest>,
): Promise<BackupManifest> {
  const folder = resolve(path);
  if (!(await isVacant(folder))) throw new BackupError(`${folder} is not empty`);
  const parent = dirname(folder);
  const partial = await mkdtemp(join(parent, `${basename(folder)}.partial-`)).catch((cause) => {
    const { message } = cause as Error;
    throw new BackupError(`cannot write next to ${folder}: ${message}`, { cause });
  });
  try {
    const manifest = await fill(partial);
    await mkdir(join(partial, DATA_FOLDER), { recursive: true, mode: 0o700 });
    await writeBytes(join(partial, MANIFEST_NAME), encodeManifest(manifest));
    await syncFolder(partial);
    await moveInto(partial, folder);
    return manifest;
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  }
}

/** Renames a complete folder to its final name; an empty folder of that name is replaced. */
export async function moveInto(from: string, folder: string): Promise<void> {
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return;
    throw new BackupError(`${folder} cannot be replaced: ${error.message}`, { cause: error });
  });
  await rename(from, folder);
  await syncFolder(dirname(folder));
}

class FolderTarget implements BackupTarget {
  readonly folder: string;
  readonly files: BackupFile[] = [];
  readonly parts: BackupPart[] = [];
  readonly #options: WriteBackupOptions;
  readonly #tree: FolderTree;
  readonly #paths = new Set<string>();
  #bytesTotal: number | undefined;
  #bytes = 0;

  constructor(options: WriteBackupOptions, folder: string, tree: FolderTree) {
    this.#options = options;
    this.folder = folder;
    this.#tree = tree;
  }

  async expect(bytes: number): Promise<void> {
    this.#bytesTotal = bytes;
    await requireRoom(this.folder, bytes + OVERHEAD_BYTES);
  }

  async addFile(path: string, source: string, length = Infinity): Promise<void> {
    const problem = findPathProblem(path);
    if (problem !== undefined) throw new BackupError(`${path} cannot be backed up: ${problem}`);
    if (this.#paths.has(path)) throw new BackupError(`${path} was added twice`);
    if (this.files.length >= FILES_MAX) throw new BackupError(`more than ${FILES_MAX} files`);
    this.#paths.add(path);
    const full = await this.#tree.prepare(`${DATA_FOLDER}/${path}`);
    const read = new Meter((count) => this.#count(count));
    const stored = new Meter(() => undefined);
    const plain = read.read(readChunks(source, length));
    const { key } = this.#options;
    const contents = key === undefined ? plain : key.encrypt(path, plain);
    await writeStream(full, stored.read(contents));
    const { size } = read.digest();
    if (length !== Infinity && size !== length) {
      throw new BackupError(`${source} has ${size} bytes, expected ${length}`);
    }
    this.files.push({ path, ...stored.digest() });
  }

  addPart(name: string, manifest: BackupManifest): void {
    const manifest_sha256 = hashManifest(manifest);
    this.parts.push({ folder: name, service: manifest.service, manifest_sha256 });
  }

  #count(more: number): void {
    this.#bytes += more;
    const { files } = this;
    this.#options.onProgress?.({
      phase: "copying",
      files: files.length,
      bytes: this.#bytes,
      bytesTotal: this.#bytesTotal,
    });
  }
}
