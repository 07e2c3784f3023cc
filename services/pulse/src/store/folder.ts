// The log's folder.
import { isAbsolute, join } from "node:path";
import type { PulseConfig } from "../config.ts";

/** Configuration keys that determine the folder. */
export type LogPlace = Pick<PulseConfig, "data_dir" | "wal_path">;

/** The configured folder of the log. */
export function findLogFolder(config: LogPlace): string {
  const { data_dir: dataDir, wal_path: walPath } = config;
  return isAbsolute(walPath) ? walPath : join(dataDir, walPath);
}
