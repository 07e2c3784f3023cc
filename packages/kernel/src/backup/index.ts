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
