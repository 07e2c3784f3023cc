// Backups in one folder format for all services.
export { BackupError } from "./error.ts";
export { BACKUP_FORMAT, type BackupFile, type BackupManifest } from "./manifest.ts";
export type { BackupProgress } from "./files.ts";
export {
  restoreBackup,
  verifyBackup,
  type BackupSource,
  type RestoreOptions,
  type VerifyOptions,
} from "./restore.ts";
export { writeBackup, type BackupTarget, type WriteBackupOptions } from "./write.ts";
