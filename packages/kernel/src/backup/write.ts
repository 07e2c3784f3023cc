// Writes a backup: first the files, then the manifest, then the folder is renamed to its final name.
import { mkdir, mkdtemp, rename, rm, rmdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { BackupError } from "./error.ts";
import {
  copyFile,
  FolderTree,
  isVacant,
  requireRoom,
  syncFolder,
  writeBytes,
  type BackupProgress,
} from "./files.ts";
import {
  BACKUP_FORMAT,
  DATA_FOLDER,
  encodeManifest,
  FILES_MAX,
  findPathProblem,
  MANIFEST_BYTES_MAX,
  MANIFEST_NAME,
  type BackupFile,
  type BackupManifest,
} from "./manifest.ts";

/** Space for folders and manifest, in addition to the files. */
const OVERHEAD_BYTES = 16 * 1024 * 1024;

/** Options of `writeBackup`. */
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
  onProgress?: (progress: BackupProgress) => void;
}

/** Receives the files of a backup. */
export interface BackupTarget {
  /** Announces the total size of all files. Rejects with BackupError if the file system has less space. */
  expect(bytes: number): Promise<void>;
  /** Copies a file, or its first `length` bytes. Rejects if the source is shorter. */
  addFile(path: string, source: string, length?: number): Promise<void>;
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
  const folder = resolve(options.folder);
  if (!(await isVacant(folder))) throw new BackupError(`${folder} is not empty`);
  const parent = dirname(folder);
  const partial = await mkdtemp(join(parent, `${basename(folder)}.partial-`)).catch((cause) => {
    const { message } = cause as Error;
    throw new BackupError(`cannot write next to ${folder}: ${message}`, { cause });
  });
  try {
    const files: BackupFile[] = [];
    const tree = new FolderTree(partial);
    const mark = await fill(createTarget(options, partial, tree, files));
    const manifest: BackupManifest = {
      format: BACKUP_FORMAT,
      service: options.service,
      service_version: options.version,
      data_format: options.dataFormat,
      created_at: new Date(options.nowMs).toISOString(),
      mark,
      files,
    };
    await mkdir(join(partial, DATA_FOLDER), { recursive: true, mode: 0o700 });
    const bytes = encodeManifest(manifest);
    if (bytes.length > MANIFEST_BYTES_MAX) throw new BackupError("the manifest is too large");
    // The files' names must be on disk before the manifest that lists them.
    await tree.sync();
    await writeBytes(join(partial, MANIFEST_NAME), bytes);
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

function createTarget(
  { onProgress }: WriteBackupOptions,
  partial: string,
  tree: FolderTree,
  files: BackupFile[],
): BackupTarget {
  let bytesTotal: number | undefined;
  let bytes = 0;
  const count = (more: number) => {
    bytes += more;
    onProgress?.({ files: files.length, bytes, bytesTotal });
  };
  const paths = new Set<string>();
  return {
    async expect(total) {
      bytesTotal = total;
      await requireRoom(partial, total + OVERHEAD_BYTES);
    },
    async addFile(path, source, length = Infinity) {
      const problem = findPathProblem(path);
      if (problem !== undefined) throw new BackupError(`${path} cannot be backed up: ${problem}`);
      if (paths.has(path)) throw new BackupError(`${path} was added twice`);
      if (files.length >= FILES_MAX) throw new BackupError(`more than ${FILES_MAX} files`);
      paths.add(path);
      const full = await tree.prepare(`${DATA_FOLDER}/${path}`);
      const digest = await copyFile(source, full, length, count);
      if (length !== Infinity && digest.size !== length) {
        throw new BackupError(`${source} has ${digest.size} bytes, expected ${length}`);
      }
      files.push({ path, ...digest });
    },
  };
}
