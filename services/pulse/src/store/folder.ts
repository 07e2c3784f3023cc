// The log's folder.
import { isAbsolute, join, relative, resolve } from "node:path";
import { nameProgram, quoteShell } from "@platform/kernel/config";
import type { PulseConfig } from "../config.ts";

/** Configuration keys that determine the folder. */
export type LogPlace = Pick<PulseConfig, "data_dir" | "wal_path">;

const DATA_DIR_DEFAULT = "data";
const WAL_PATH_DEFAULT = "queue.wal";

/** A command of `platform-pulse` for this log, to be typed in the working directory. */
export function formatCommand({ data_dir: dataDir, wal_path: walPath }: LogPlace, command: string) {
  const short = relative(process.cwd(), resolve(dataDir));
  const shown = short.startsWith("..") ? dataDir : short || ".";
  const words = [nameProgram("platform-pulse"), command];
  if (shown !== DATA_DIR_DEFAULT) words.push("--data-dir", quoteShell(shown));
  if (walPath !== WAL_PATH_DEFAULT) words.push("--wal-path", quoteShell(walPath));
  return words.join(" ");
}

/** The configured folder of the log. */
export function findLogFolder(config: LogPlace): string {
  const { data_dir: dataDir, wal_path: walPath } = config;
  return isAbsolute(walPath) ? walPath : join(dataDir, walPath);
}
