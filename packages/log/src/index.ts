// The segmented append log: one journal, and one fsync for all waiting appends.
export * from "./types.ts";
export { readTopicNames } from "./catalogue/manifest-files.ts";
export { DamagedError } from "./damage/damaged-error.ts";
export {
  ColdStoreError,
  type ColdPace,
  type ColdSource,
  type ColdStore,
  type ListedColdObject,
} from "./cold-store.ts";
export { LogError, type LogErrorCode } from "./errors.ts";
export type { Clock, Disk, DiskFile } from "./disk/port.ts";
export { openNodeDisk, systemClock } from "./disk/node-disk.ts";
export type { DurableListener } from "./engine/log-parts.ts";
export type { Log } from "./engine/log.ts";
export { openLog } from "./engine/open.ts";
export { holdWholeLog, LOG_DATA_FORMATS, type LogFile, type WholeLog } from "./repair/backup.ts";
export { checkLog, repairLog } from "./repair/repair.ts";
export type { ObjectCheck } from "./repair/objects.ts";
export type { CompactionResult } from "./upkeep/compaction.ts";
