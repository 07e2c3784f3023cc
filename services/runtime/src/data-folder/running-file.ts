// The file in which `platform up` describes its processes for the other commands.
import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { explainFileError, isLocked } from "./data-folder.ts";
import { writePrivateFile } from "./private-file.ts";

const FILE_NAME = "running.json";

const serviceSchema = z.object({
  name: z.string(),
  label: z.string(),
  state: z.enum(["starting", "running", "restarting", "stopping", "stopped"]),
  /** For programs of this platform. */
  url: z.string(),
  /** For people, where it is another one: with TLS, certificates are for public names. */
  public_url: z.string().optional(),
  pid: z.number().optional(),
  /** Base URL of its probes, if it has any. */
  probe_url: z.string().optional(),
  listeners: z.array(z.object({ name: z.string(), host: z.string(), port: z.number() })),
  started_at: z.string().optional(),
  /** Unexpected exits since the platform was started. */
  restarts: z.number(),
  /** The last exit and the output before it. */
  last_failure: z.string().optional(),
  /** Set for a project: its absolute folder, and the reason for which it runs. */
  project: z.object({ folder: z.string(), kind: z.enum(["own", "kept", "joined"]) }).optional(),
});
const runningSchema = z.object({
  pid: z.number(),
  version: z.string(),
  started_at: z.string(),
  /** Address of the platform's own API. */
  api_url: z.string().optional(),
  services: z.array(serviceSchema),
});

/** A service as the file describes it. */
export type ServiceState = z.output<typeof serviceSchema>;
/** Content of the file. */
export type RunningState = z.output<typeof runningSchema>;

/** Replaces the file. */
export function writeRunning(folder: string, state: RunningState): void {
  writePrivateFile(join(folder, FILE_NAME), state);
}

/** Removes the file. */
export function removeRunning(folder: string): void {
  rmSync(join(folder, FILE_NAME), { force: true });
}

/** The running platform; undefined if none runs with this folder. Throws an explanation if this user may not find out. */
export function readRunning(folder: string): RunningState | undefined {
  const path = join(folder, FILE_NAME);
  // A killed platform leaves its file, but not its lock.
  try {
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    if (!isLocked(folder)) return undefined;
    return runningSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    throw explainFileError(error, folder);
  }
}
