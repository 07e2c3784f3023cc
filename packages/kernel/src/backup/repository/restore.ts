// Restores files of a snapshot in a repository.
import { open } from "node:fs/promises";
import { BackupError } from "../error.ts";
import type { BackupProgress } from "../files.ts";
import { restoreStaged, type StagedRestore } from "../restore.ts";
import { requireWholeSnapshot } from "./check.ts";
import type { FileEntry } from "./format.ts";
import { restorePages } from "./page-map.ts";
import type { Repository, SavedSnapshot } from "./repository.ts";

/** Options of {@link restoreSnapshot}. */
export interface RestoreSnapshotOptions extends Omit<StagedRestore, "measure"> {
  onProgress?: ((progress: BackupProgress) => void) | undefined;
}

/** Writes a file of a snapshot to the new file `to`, and syncs it. Rejects with BackupError if it is damaged. */
export async function restoreFile(
  { objects }: Repository,
  entry: FileEntry,
  to: string,
): Promise<void> {
  if (entry.pages !== undefined) {
    await restorePages(objects, { ...entry, pages: entry.pages }, to);
    return;
  }
  const file = await open(to, "wx", 0o600);
  try {
    let at = 0;
    for (const piece of entry.pieces ?? []) {
      const bytes = await objects.get(entry.path, piece);
      await file.write(bytes, 0, bytes.length, at);
      at += bytes.length;
    }
    if (at !== entry.bytes) {
      throw new BackupError(`${entry.path}: ${at} bytes, expected ${entry.bytes}`);
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Restores a whole snapshot as `restoreBackup` restores a backup: everything is verified first, staged next to the target,
 * checked, and renamed.
 */
export async function restoreSnapshot(
  repository: Repository,
  snapshot: SavedSnapshot,
  options: RestoreSnapshotOptions,
): Promise<void> {
  requireOpen(repository);
  const { onProgress, ...staged } = options;
  const measure = async (isCounted: (path: string) => boolean): Promise<number> => {
    let bytes = 0;
    for await (const entries of repository.readLists(snapshot)) {
      for (const entry of entries) if (isCounted(entry.path)) bytes += entry.bytes;
    }
    return bytes;
  };
  await requireWholeSnapshot(repository, { onProgress }, snapshot);
  await restoreStaged({ ...staged, measure }, async (prepare) => {
    const bytesTotal = snapshot.mark.bytes;
    let files = 0;
    let bytes = 0;
    for await (const entries of repository.readLists(snapshot)) {
      for (const entry of entries) {
        await restoreFile(repository, entry, await prepare(entry.path));
        files += 1;
        bytes += entry.bytes;
        onProgress?.({ phase: "restoring", files, bytes, bytesTotal });
      }
    }
  });
}

/** Throws BackupError if the files of a repository cannot be read without its passphrase. */
export function requireOpen({ isEncrypted, key, storage }: Repository): void {
  if (!isEncrypted || key !== undefined) return;
  throw new BackupError(`${storage.place} is encrypted: a passphrase is required`);
}
