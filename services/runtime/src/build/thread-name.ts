// Names of built threads.
import { basename } from "node:path";

/** Names the built file, without `.js`, of a thread's source `{packages,services}/OWNER/src/…`, a path with slashes. */
export function nameThread(path: string): string {
  const [, owner = ""] = path.split("/");
  return `${owner}-${basename(path, ".ts")}`;
}
