// Verifies a backup, and restores it into a folder that is renamed to its final name when it is complete.
import { mkdtemp, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { BackupKey } from "./cipher.ts";
import { BackupError } from "./error.ts";
import {
  copyFile,
  digestFile,
  findDifference,
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
  hashManifest,
  MANIFEST_BYTES_MAX,
  MANIFEST_NAME,
  type BackupFile,
  type BackupManifest,
} from "./manifest.ts";
import { isBelow, StagedFolders, type Elsewhere } from "./staged-folders.ts";
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
  /** Passphrase of an encrypted backup; without it, its checksums are verified, but not that nobody has changed them. */
  passphrase?: string | undefined;
  onProgress?: ((progress: BackupProgress) => void) | undefined;
}

/** Options of `restoreBackup`. */
export interface RestoreOptions extends VerifyOptions {
  /** Folder to restore into; must be missing or empty. Its parent must exist. */
  target: string;
  /** Checks the restored files before the folder is renamed; a rejection undoes the restore. */
  check?: (folder: string) => Promise<void>;
  /** Folders of the backup that are restored elsewhere, such as on other disks. */
  elsewhere?: readonly Elsewhere[];
}

/**
 * Reads all files of a backup; its parts are compared with the manifest, and not read. Rejects with a BackupError that
 * lists missing, changed, damaged and extra files.
 */
export async function verifyBackup(options: VerifyOptions): Promise<BackupManifest> {
  const { manifest } = await readManifest(options);
  await verifyFiles(options, manifest);
  return manifest;
}

/** A restore into a folder that is renamed when it is complete. */
export interface StagedRestore extends Pick<RestoreOptions, "target" | "check" | "elsewhere"> {
  /** The bytes of the files whose paths are counted. */
  measure: (isCounted: (path: string) => boolean) => number | Promise<number>;
}

/**
 * Restores files into a new folder, and into new folders elsewhere. `fill` writes them where `prepare` says; then `check`
 * runs, and the folders get their names. If it fails, the folders are removed.
 */
export async function restoreStaged(
  options: StagedRestore,
  fill: (prepare: (path: string) => Promise<string>) => Promise<void>,
): Promise<void> {
  const target = resolve(options.target);
  const { elsewhere = [], measure } = options;
  await requireVacant(target);
  await requireRoom(dirname(target), await measure((path) => !isElsewhere(path, elsewhere)));
  for (const place of elsewhere) {
    await requireRoom(place.target, await measure((path) => isBelow(path, place)));
  }
  const restoring = await mkdtemp(join(dirname(target), `${basename(target)}.restoring-`));
  const placed = await StagedFolders.create(elsewhere).catch(async (error: unknown) => {
    await rm(restoring, { recursive: true, force: true });
    throw error;
  });
  try {
    const tree = new FolderTree(restoring);
    await fill(async (path) => (await placed.prepare(path)) ?? (await tree.prepare(path)));
    await tree.sync();
    await placed.sync();
    await options.check?.(restoring);
    await placed.publish();
    await moveInto(restoring, target);
  } catch (error) {
    await rm(restoring, { recursive: true, force: true });
    await placed.remove();
    throw error;
  }
}

/**
 * Restores a backup. All files are verified before anything is written. Then each is copied, and verified again, to a
 * folder next to the target (`<name>.restoring-…`), `check` runs, and the folder is renamed to the target. A failed
 * restore removes the folder; a killed one leaves it. Folders of `elsewhere` are staged inside their own targets.
 */
export async function restoreBackup(options: RestoreOptions): Promise<BackupManifest> {
  const { manifest, key } = await readManifest(options);
  if (manifest.encryption !== undefined && key === undefined) {
    throw new BackupError(`${options.folder} is encrypted: a passphrase is required`);
  }
  await requireVacant(resolve(options.target));
  await verifyFiles(options, manifest);
  const measure = (isCounted: (path: string) => boolean): number => sumBytes(manifest, isCounted);
  await restoreStaged({ ...options, measure }, (prepare) =>
    copyFiles(options, manifest, key, prepare),
  );
  return manifest;
}

/** Rejects with BackupError unless a folder is missing or empty. */
export async function requireVacant(target: string): Promise<void> {
  if (await isVacant(target)) return;
  throw new BackupError(`${target} is not empty; move it away to restore into it`);
}

async function verifyFiles(options: VerifyOptions, manifest: BackupManifest): Promise<void> {
  const { folder } = options;
  const problems = await findExtraFiles(folder, manifest);
  problems.push(...(await findPartProblems(folder, manifest)));
  await readFiles(manifest, problems, options, "verifying", (file, count) =>
    digestFile(join(folder, DATA_FOLDER, file.path), file.size, count),
  );
  requireWhole(folder, problems);
}

async function copyFiles(
  options: RestoreOptions,
  manifest: BackupManifest,
  key: BackupKey | undefined,
  prepare: (path: string) => Promise<string>,
): Promise<void> {
  const { folder } = options;
  const problems: string[] = [];
  await readFiles(manifest, problems, options, "restoring", async (file, count) => {
    const full = await prepare(file.path);
    const source = join(folder, DATA_FOLDER, file.path);
    const decrypt = key && ((contents: AsyncIterable<Buffer>) => key.decrypt(file.path, contents));
    return copyFile(source, full, file.size + 1, count, decrypt);
  });
  requireWhole(folder, problems);
}

async function readManifest(
  options: VerifyOptions,
): Promise<{ manifest: BackupManifest; key: BackupKey | undefined }> {
  const { folder, service, dataFormats, passphrase } = options;
  const manifest = await loadManifest(folder);
  if (manifest.service !== service) {
    throw new BackupError(`${folder} is a backup of ${manifest.service}, not of ${service}`);
  }
  const { data_format: found, service_version: version, encryption } = manifest;
  const { oldest, newest } = dataFormats;
  if (found < oldest || found > newest) {
    const known = oldest === newest ? `${newest}` : `${oldest} to ${newest}`;
    throw new BackupError(
      `${folder} was written by ${service} ${version} with data format ${found}; this version reads ${known}`,
    );
  }
  if (encryption === undefined || passphrase === undefined) return { manifest, key: undefined };
  const key = await BackupKey.open(passphrase, encryption);
  key.requireSealed({ ...manifest, encryption }, join(folder, MANIFEST_NAME));
  return { manifest, key };
}

/** Reads and decodes the manifest of a folder. Rejects with BackupError if it is missing, damaged or of another format. */
export async function loadManifest(folder: string): Promise<BackupManifest> {
  const path = join(folder, MANIFEST_NAME);
  const bytes = await readBytes(path, MANIFEST_BYTES_MAX).catch((cause: unknown) => {
    const { code } = cause as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "ENOTDIR") throw cause;
    const text = `${folder} has no ${MANIFEST_NAME}: not a backup, or an incomplete one`;
    throw new BackupError(text, { cause });
  });
  return decodeManifest(bytes, path);
}

// A part of another backup, or a missing one, is found by the checksum of its manifest.
async function findPartProblems(folder: string, manifest: BackupManifest): Promise<string[]> {
  const problems: string[] = [];
  for (const part of manifest.parts ?? []) {
    const found = await loadManifest(join(folder, part.folder)).catch((error: unknown) => {
      if (!(error instanceof BackupError)) throw error;
      problems.push(error.message);
    });
    if (found === undefined || hashManifest(found) === part.manifest_sha256) continue;
    problems.push(`${part.folder}: the manifest is not the one of this backup`);
  }
  return problems;
}

async function readFiles(
  manifest: BackupManifest,
  problems: string[],
  { onProgress }: VerifyOptions,
  phase: BackupProgress["phase"],
  read: (file: BackupFile, count: CountBytes) => Promise<Digest>,
): Promise<void> {
  const bytesTotal = sumBytes(manifest);
  let bytes = 0;
  for (const [files, file] of manifest.files.entries()) {
    const count = (more: number) => {
      bytes += more;
      onProgress?.({ phase, files, bytes, bytesTotal });
    };
    const problem = await read(file, count).then(
      (digest) => findDifference(file, digest),
      (error: NodeJS.ErrnoException) => describeReadError(error),
    );
    if (problem !== undefined) problems.push(`${file.path}: ${problem}`);
  }
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

async function findExtraFiles(
  folder: string,
  { files, parts = [] }: BackupManifest,
): Promise<string[]> {
  const known = new Set(files.map(({ path }) => `${DATA_FOLDER}/${path}`));
  known.add(MANIFEST_NAME);
  const problems: string[] = [];
  for await (const path of listFiles(folder)) {
    const isOfPart = parts.some((part) => path.startsWith(`${part.folder}/`));
    if (!isOfPart && !known.has(path)) problems.push(`${path}: not listed in ${MANIFEST_NAME}`);
  }
  return problems;
}

/** Throws a BackupError that lists problems, if there are any. */
export function requireWhole(folder: string, problems: readonly string[]): void {
  if (problems.length === 0) return;
  const named = problems.slice(0, PROBLEMS_NAMED_MAX);
  const more = problems.length - named.length;
  if (more > 0) named.push(`and ${more} more`);
  throw new BackupError(`${folder} is damaged: ${named.join("; ")}`);
}

function sumBytes(
  { files }: BackupManifest,
  isCounted: (path: string) => boolean = () => true,
): number {
  return files.reduce((sum, { path, size }) => (isCounted(path) ? sum + size : sum), 0);
}

function isElsewhere(path: string, elsewhere: readonly Elsewhere[]): boolean {
  return elsewhere.some((place) => isBelow(path, place));
}
