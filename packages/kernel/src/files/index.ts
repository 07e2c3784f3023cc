// Files that are replaced durably, a cache of open files, locks between processes, their identities, and logs with one entry
// per line.
export { DiskReserve } from "./disk-reserve.ts";
export { locateExclusively } from "./exclusive-database.ts";
export { FileLockedError, lockFile } from "./file-lock.ts";
export { LineFollower, type LineFollowerOptions } from "./line-follower.ts";
export { OpenFiles, type FileLease } from "./open-files.ts";
export { claimReplica, createReplica, type Replica } from "./replica.ts";
export {
  createFileDraft,
  replaceFile,
  replaceFileSync,
  syncFolder,
  syncFolderSync,
  type FileDraft,
} from "./replace-file.ts";
export {
  readLinePage,
  type LinePage,
  type LinePageOptions,
  type LinePosition,
} from "./line-page.ts";
