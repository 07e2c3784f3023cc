// Backups in one folder format for all services.
export { BackupKey } from "./cipher.ts";
export { BackupError } from "./error.ts";
export { type BackupManifest } from "./manifest.ts";
export type { BackupProgress } from "./files.ts";
export { fetchBackup } from "./fetch.ts";
export { readPassphrase } from "./passphrase.ts";
export { createProgressPrinter, formatCount, formatSize } from "./progress.ts";
export { receiveBackup } from "./receive.ts";
export { loadManifest, requireVacant, restoreBackup, verifyBackup } from "./restore.ts";
export { createBackupRoute, type BackupRouteOptions } from "./route.ts";
export {
  openSnapshotFile,
  readSnapshotFile,
  type Snapshot,
  type SnapshotFile,
} from "./snapshot.ts";
export { encodeTarHead, padTar, readTar, TAR_END } from "./tar.ts";
export { writeBackup, type BackupTarget } from "./write.ts";
export { checkRepository, requireWholeSnapshot } from "./repository/check.ts";
export { type FileEntry, HEAD_NAME } from "./repository/format.ts";
export { type KeepRule, pruneRepository } from "./repository/prune.ts";
export { Repository, type RepositoryOptions, type SavedSnapshot } from "./repository/repository.ts";
export { requireOpen, restoreFile, restoreSnapshot } from "./repository/restore.ts";
export { FolderStorage, type RepositoryStorage } from "./repository/storage.ts";
export { writeSnapshot } from "./repository/write.ts";
