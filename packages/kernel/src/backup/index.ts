// Backups in one folder format for all services.
export { BackupError } from "./error.ts";
export { type BackupManifest } from "./manifest.ts";
export type { BackupProgress } from "./files.ts";
export { restoreBackup, verifyBackup } from "./restore.ts";
export { writeBackup } from "./write.ts";
