// The folder of the log.
import { isAbsolute, join } from "node:path";
import type { PulseConfig } from "../config.ts";

/** The keys that say where the log is. */
export type LogPlace = Pick<PulseConfig, "data_dir" | "wal_path">;

/** Where the log is, as configured. */
export function findLogFolder(config: LogPlace): string {
  const { data_dir: dataDir, wal_path: walPath } = config;
  return isAbsolute(walPath) ? walPath : join(dataDir, walPath);
}
