// Writes a snapshot of a store into a repository, and removes snapshots that are not kept.
import {
  type BackupProgress,
  type KeepRule,
  pruneRepository,
  type RepositoryStorage,
  Repository,
  type RepositoryOptions,
  type SavedSnapshot,
  type Snapshot,
  writeSnapshot,
} from "@platform/kernel/backup";
import { VERSION } from "../config.ts";
import { FORMAT_VERSION } from "../index/schema.ts";

const SERVICE = "vault";

/** Options of {@link backUp}. */
export interface BackUpOptions {
  storage: RepositoryStorage;
  /** Encrypts a new repository, and opens an encrypted one. */
  passphrase: string | undefined;
  /** Identifies the store. */
  owner: string;
  /** Takes the snapshot, when the repository is open. */
  takeSnapshot: () => Promise<Snapshot>;
  /** All snapshots are kept without it. */
  keep?: KeepRule | undefined;
  nowMs: number;
  onProgress?: (progress: BackupProgress) => void;
  signal?: AbortSignal;
}

/** The result of a backup. */
export interface BackUpResult {
  snapshot: SavedSnapshot;
  /** Snapshots that were removed. */
  removed: number;
  /** The reason why nothing was removed. The snapshot is whole. */
  pruneFailure?: string;
}

/** Repositories of this service with the formats that it reads. */
export function describeRepository(
  storage: RepositoryStorage,
  passphrase: string | undefined,
): RepositoryOptions {
  return {
    storage,
    service: SERVICE,
    dataFormats: { oldest: 1, newest: FORMAT_VERSION },
    passphrase,
  };
}

/** Adds a snapshot to a repository. Rejects with BackupError if another backup writes to it. */
export async function backUp(options: BackUpOptions): Promise<BackUpResult> {
  const { storage, passphrase, owner, takeSnapshot, keep, nowMs, onProgress, signal } = options;
  const unlock = await storage.lock();
  try {
    const opened = describeRepository(storage, passphrase);
    const repository = await Repository.openOrCreate({ ...opened, version: VERSION, owner, nowMs });
    const written = { service: SERVICE, version: VERSION, dataFormat: FORMAT_VERSION, nowMs };
    const taken = await takeSnapshot();
    let snapshot: SavedSnapshot;
    try {
      snapshot = await writeSnapshot(repository, { ...written, onProgress, signal }, taken);
    } finally {
      await taken.release();
    }
    try {
      const { snapshots: removed } = await pruneRepository(repository, keep, signal);
      return { snapshot, removed };
    } catch (error) {
      signal?.throwIfAborted();
      return { snapshot, removed: 0, pruneFailure: (error as Error).message };
    }
  } finally {
    await unlock();
  }
}
