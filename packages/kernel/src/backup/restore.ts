// Verifies a backup, and restores it into a folder that is renamed to its final name when it is complete.
import { mkdtemp, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { BackupError } from "./error.ts";
import {
  copyFile,
  digestFile,
  FolderTree,
  isVacant,
  listFiles,
  readBytes,
  requireRoom,
  type BackupProgress,
  type CountBytes,
  type Digest,
} from "./files.ts";
import {
  DATA_FOLDER,
  decodeManifest,
  MANIFEST_BYTES_MAX,
  MANIFEST_NAME,
  type BackupFile,
  type BackupManifest,
} from "./manifest.ts";
import { moveInto } from "./write.ts";

/** Maximum number of problems in an error message. */
const PROBLEMS_NAMED_MAX = 10;

/** A backup and the service that reads it. */
interface BackupSource {
  /** Folder of the backup. */
  folder: string;
  /** Backups of other services are rejected. */
  service: string;
  /** Oldest and newest supported version of the service's files. */
  dataFormats: { oldest: number; newest: number };
}

/** Options of `verifyBackup`. */
export interface VerifyOptions extends BackupSource {
  onProgress?: (progress: BackupProgress) => void;
}

/** Options of `restoreBackup`. */
export interface RestoreOptions extends VerifyOptions {
  /** Folder to restore into; must be missing or empty. Its parent must exist. */
  target: string;
  /** Checks the restored files before the folder is renamed; a rejection undoes the restore. */
  check?: (folder: string) => Promise<void>;
}

/** Reads all files of a backup. Rejects with a BackupError that lists missing, changed, damaged and extra files. */
export async function verifyBackup(options: VerifyOptions): Promise<BackupManifest> {
  const { folder } = options;
  const manifest = await readManifest(options);
  const problems = await findExtraFiles(folder, manifest);
  await readFiles(manifest, problems, options, (file, count) =>
    digestFile(join(folder, DATA_FOLDER, file.path), file.size, count),
  );
  requireWhole(folder, problems);
  return manifest;
}

/**
 * Restores a backup: copies and verifies each file in a folder next to the target (`<name>.restoring-…`), runs `check`,
 * then renames the folder to the target. A failed restore removes the folder; a killed one leaves it.
 */
export async function restoreBackup(options: RestoreOptions): Promise<BackupManifest> {
  const { folder, check } = options;
  const target = resolve(options.target);
  const manifest = await readManifest(options);
  if (!(await isVacant(target))) {
    throw new BackupError(`${target} is not empty; move it away to restore into it`);
  }
  const problems = await findExtraFiles(folder, manifest);
  requireWhole(folder, problems);
  await requireRoom(dirname(target), sumBytes(manifest));
  const restoring = await mkdtemp(join(dirname(target), `${basename(target)}.restoring-`));
  try {
    const tree = new FolderTree(restoring);
    await readFiles(manifest, problems, options, async (file, count) => {
      const full = await tree.prepare(file.path);
      return copyFile(join(folder, DATA_FOLDER, file.path), full, file.size + 1, count);
    });
    requireWhole(folder, problems);
    await tree.sync();
    await check?.(restoring);
    await moveInto(restoring, target);
    return manifest;
  } catch (error) {
    await rm(restoring, { recursive: true, force: true });
    throw error;
  }
}

async function readManifest({ folder, service, dataFormats }: BackupSource) {
  const path = join(folder, MANIFEST_NAME);
  const bytes = await readBytes(path, MANIFEST_BYTES_MAX).catch((cause: unknown) => {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
    const text = `${folder} has no ${MANIFEST_NAME}: not a backup, or an incomplete one`;
    throw new BackupError(text, { cause });
  });
  const manifest = decodeManifest(bytes, path);
  if (manifest.service !== service) {
    throw new BackupError(`${folder} is a backup of ${manifest.service}, not of ${service}`);
  }
  const { data_format: found, service_version: version } = manifest;
  const { oldest, newest } = dataFormats;
  if (found < oldest || found > newest) {
    const known = oldest === newest ? `${newest}` : `${oldest} to ${newest}`;
    throw new BackupError(
      `${folder} was written by ${service} ${version} with data format ${found}; this version reads ${known}`,
    );
  }
  return manifest;
}

async function readFiles(
  manifest: BackupManifest,
  problems: string[],
  { onProgress }: VerifyOptions,
  read: (file: BackupFile, count: CountBytes) => Promise<Digest>,
): Promise<void> {
  const bytesTotal = sumBytes(manifest);
  let bytes = 0;
  for (const [files, file] of manifest.files.entries()) {
    const count = (more: number) => {
      bytes += more;
      onProgress?.({ files, bytes, bytesTotal });
    };
    const problem = await read(file, count).then(
      (digest) => findDifference(file, digest),
      (error: NodeJS.ErrnoException) => describeReadError(error),
    );
    if (problem !== undefined) problems.push(`${file.path}: ${problem}`);
  }
}

function findDifference(file: BackupFile, digest: Digest): string | undefined {
  if (digest.size < file.size) return `${digest.size} bytes, expected ${file.size}`;
  if (digest.size > file.size) return `more than the expected ${file.size} bytes`;
  return digest.sha256 === file.sha256 ? undefined : "does not match its checksum";
}

// Errors of single files are collected; a full disk ends the operation.
function describeReadError(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case "ENOENT":
      return "missing";
    case "EIO":
      return "cannot be read (EIO)";
    case "ELOOP":
      return "a symbolic link";
    default:
      throw error;
  }
}

async function findExtraFiles(folder: string, { files }: BackupManifest): Promise<string[]> {
  const known = new Set(files.map(({ path }) => `${DATA_FOLDER}/${path}`));
  known.add(MANIFEST_NAME);
  const problems: string[] = [];
  for await (const path of listFiles(folder)) {
    if (!known.has(path)) problems.push(`${path}: not listed in ${MANIFEST_NAME}`);
  }
  return problems;
}

function requireWhole(folder: string, problems: readonly string[]): void {
  if (problems.length === 0) return;
  const named = problems.slice(0, PROBLEMS_NAMED_MAX);
  const more = problems.length - named.length;
  if (more > 0) named.push(`and ${more} more`);
  throw new BackupError(`${folder} is damaged: ${named.join("; ")}`);
}

function sumBytes({ files }: BackupManifest): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}
