// Files that stay open for the next user.
export { OpenFiles, type FileLease, type OpenFilesOptions } from "./open-files.ts";
