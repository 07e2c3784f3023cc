// A cache of open files.
export { OpenFiles, type FileLease, type OpenFilesOptions } from "./open-files.ts";
