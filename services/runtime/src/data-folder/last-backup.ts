// The time of the last backup that became complete, which outlives restarts: an alert depends on it.
import { chownSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { writePrivateFile } from "./private-file.ts";

const FILE_NAME = "last-backup.json";
const schema = z.object({ completed_at: z.iso.datetime() });

/** Records a complete backup. If root runs the command, the file belongs to the owner of the folder, who reads it. */
export function noteBackup(dataDir: string, nowMs: number): void {
  const path = join(dataDir, FILE_NAME);
  writePrivateFile(path, { completed_at: new Date(nowMs).toISOString() });
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dataDir);
  chownSync(path, uid, gid);
}

/** Returns the time of the last complete backup in epoch ms; undefined if there was none. Throws if the file is damaged. */
export function readLastBackup(dataDir: string): number | undefined {
  let text: string;
  try {
    text = readFileSync(join(dataDir, FILE_NAME), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return Date.parse(schema.parse(JSON.parse(text)).completed_at);
}
