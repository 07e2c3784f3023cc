// A cache of open files, and locks between processes.
export { FileLockedError, lockFile } from "./file-lock.ts";
export { OpenFiles, type FileLease } from "./open-files.ts";
