// A cache of open files, and locks between processes.
export { FileLockedError, lockFile } from "./file-lock.ts";
export { OpenFiles, type FileLease } from "./open-files.ts";
export {
  formatLineCursor,
  LINE_CURSOR,
  parseLineCursor,
  readLinePage,
  type LinePage,
  type LinePageOptions,
  type LinePosition,
} from "./line-page.ts";
