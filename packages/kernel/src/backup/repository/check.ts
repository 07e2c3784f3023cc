// Verifies a repository: every manifest, every list, and every object that they name.
import { BackupError } from "../error.ts";
import type { BackupProgress } from "../files.ts";
import { FILES_MAX, type BackupFile } from "../manifest.ts";
import { requireWhole } from "../restore.ts";
import type { Piece } from "./format.ts";
import { nameObject, OBJECT_FOLDER } from "./object-names.ts";
import { listPieces } from "./page-map.ts";
import { type Repository, type SavedSnapshot, toListPiece } from "./repository.ts";

const PROBLEMS_MAX = 1_000;

/** The result of a check. Without problems, each snapshot can be restored. */
export interface RepositoryCheck {
  problems: string[];
  snapshots: string[];
  /** Objects that were read, and their bytes. */
  objects: number;
  bytes: number;
  /** Objects that no snapshot names: of interrupted runs. The next one removes them. */
  unused: number;
  /** False if only the lists of an encrypted repository could be found, because the passphrase was not given. */
  isComplete: boolean;
}

/** Options of a check. */
export interface CheckOptions {
  onProgress?: ((progress: BackupProgress) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** Checks a repository; with `snapshot` what that snapshot needs. Reads each object once. */
export async function checkRepository(
  repository: Repository,
  options: CheckOptions,
  snapshot?: SavedSnapshot,
): Promise<RepositoryCheck> {
  const result: RepositoryCheck = {
    problems: [],
    snapshots: [],
    objects: 0,
    bytes: 0,
    unused: 0,
    isComplete: !repository.isEncrypted || repository.key !== undefined,
  };
  const seen = new Set<string>();
  const ids = snapshot === undefined ? await repository.listIds() : [snapshot.id];
  for (const id of ids) {
    result.snapshots.push(id);
    await note(result, async () => {
      const saved = snapshot ?? (await repository.load(id));
      await checkSnapshot(repository, options, saved, seen, result);
    });
  }
  if (snapshot !== undefined) return result;
  for await (const name of repository.storage.list(OBJECT_FOLDER)) {
    if (seen.has(name.slice(name.lastIndexOf("/") + 1))) continue;
    // Without the passphrase, the name of an object still says what its bytes must be.
    if (!result.isComplete) await checkUnnamed(repository, name, result);
    else result.unused += 1;
  }
  return result;
}

/** Rejects with BackupError unless a snapshot is whole. */
export async function requireWholeSnapshot(
  repository: Repository,
  options: CheckOptions,
  snapshot: SavedSnapshot,
): Promise<void> {
  const { problems } = await checkRepository(repository, options, snapshot);
  requireWhole(repository.storage.place, problems);
}

async function checkSnapshot(
  repository: Repository,
  options: CheckOptions,
  saved: SavedSnapshot,
  seen: Set<string>,
  result: RepositoryCheck,
): Promise<void> {
  for (const page of saved.manifest.files) {
    const piece = toPiece(repository, page);
    const isRead = !seen.has(piece.sha256);
    const isWhole = await checkPiece(repository, options, piece, seen, result);
    if (!isRead || !isWhole || !result.isComplete) continue;
    await note(result, async () => {
      for (const entry of await repository.readList(page)) {
        for (const one of listPieces(entry)) {
          await checkPiece(repository, options, one, seen, result);
        }
      }
    });
  }
}

async function checkPiece(
  repository: Repository,
  { onProgress, signal }: CheckOptions,
  piece: Piece,
  seen: Set<string>,
  result: RepositoryCheck,
): Promise<boolean> {
  if (seen.has(piece.sha256)) return true;
  signal?.throwIfAborted();
  if (seen.size >= FILES_MAX * 16) throw new BackupError("too many objects");
  seen.add(piece.sha256);
  const isWhole = await note(result, async () => {
    await repository.objects.verify(piece);
  });
  result.objects += 1;
  result.bytes += piece.stored ?? piece.bytes;
  const { objects: files, bytes } = result;
  onProgress?.({ phase: "verifying", files, bytes, bytesTotal: undefined });
  return isWhole;
}

async function checkUnnamed(
  { objects, storage }: Repository,
  name: string,
  result: RepositoryCheck,
): Promise<void> {
  const sha256 = name.slice(name.lastIndexOf("/") + 1);
  const bytes = (await storage.measure(name)) ?? 0;
  await note(result, async () => {
    if (name !== nameObject(sha256)) throw new BackupError(`${name}: not an object`);
    await objects.verify({ sha256, bytes });
  });
  result.objects += 1;
  result.bytes += bytes;
}

function toPiece({ isEncrypted }: Repository, { path, size, sha256 }: BackupFile): Piece {
  return toListPiece(path, size, sha256, isEncrypted);
}

// Problems are collected; a full disk or an abort ends the check.
async function note(result: RepositoryCheck, work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof BackupError)) throw error;
    if (result.problems.length < PROBLEMS_MAX) result.problems.push(error.message);
    return false;
  }
}
