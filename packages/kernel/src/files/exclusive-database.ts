// The location of a SQLite database that only this process may open.
import { pathToFileURL } from "node:url";

/**
 * Returns the location of a file for `DatabaseSync`: no other process can open it, and SQLite keeps the index of the log in
 * memory, in place of a mapped file: a page of a map that cannot be written ends the process
 * (https://sqlite.org/vfs.html#standard_unix_vfses). All connections of the process must use it.
 */
export function locateExclusively(path: string): string {
  if (process.platform === "win32" || process.versions["bun"] !== undefined) return path;
  const url = pathToFileURL(path);
  url.searchParams.set("vfs", "unix-excl");
  return url.href;
}
