// The platform that a command talks to, found by its data directory.
import { quoteShell } from "@platform/kernel/config";
import { readCredentials } from "../credentials/credentials.ts";
import { explainFileError, formatCommand, formatFolder } from "../data-folder/data-folder.ts";
import { findPlatforms, locatePlatform } from "../data-folder/platform-list.ts";
import { readRunning, type RunningState, type ServiceState } from "../data-folder/running-file.ts";

/** A running platform with its credentials. */
export interface Target {
  dataDir: string;
  state: RunningState;
  credentials: ReadonlyMap<string, string>;
  /** The token with which identity is called. Default: one of the client `platform-cli`. */
  identityToken?: string;
}

/** Finds the running platform. Throws an error that says how to start it. */
export async function findTarget(data: string): Promise<Target> {
  const dataDir = locatePlatform(data);
  try {
    const state = readRunning(dataDir);
    if (state === undefined) throw explainStopped(dataDir);
    return { dataDir, state, credentials: await readCredentials(dataDir) };
  } catch (error) {
    throw explainFileError(error, dataDir);
  }
}

/** The error of a command that needs a running platform. */
export function explainStopped(dataDir: string): Error {
  const shown = quoteShell(formatFolder(dataDir));
  const others = findPlatforms().map((one) => quoteShell(formatFolder(one.dataDir)));
  const running = others.length === 0 ? "" : `; platforms run with ${others.join(", ")}`;
  return new Error(
    `no platform is running with the data folder ${shown}: start it with "${formatCommand(dataDir, "up")}", or name its folder with --data${running}`,
  );
}

/** A running service by its short name. Throws if it does not run. */
export function findService({ state, dataDir }: Target, name: string, label: string): ServiceState {
  const service = state.services.find((item) => item.name === name);
  if (service === undefined)
    throw new Error(`${label} is not part of this platform: it was started with --only`);
  if (service.state === "running") return service;
  const reason = service.last_failure === undefined ? "" : ` (${service.last_failure})`;
  throw new Error(
    `${label} is ${service.state}${reason}; see "${formatCommand(dataDir, "status")}"`,
  );
}

/** A credential from the data directory or the environment. */
export function requireCredential({ credentials, dataDir }: Target, name: string): string {
  const value = process.env[name] || credentials.get(name);
  if (value !== undefined && value !== "") return value;
  throw new Error(
    `${name} is missing in ${formatFolder(dataDir)}/credentials.env: restart the platform, which creates it`,
  );
}
