// A cache of open files.
export { OpenFiles, type FileLease } from "./open-files.ts";
