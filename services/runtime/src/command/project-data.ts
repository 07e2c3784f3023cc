// The databases of the project in the working directory, for `run` and `migrate`.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { formatFolder } from "../data-folder/data-folder.ts";
import { findHost } from "../data-folder/platform-list.ts";
import { findProject } from "../project/project.ts";
import { getProjectData } from "../projects/records.ts";

const VARIABLE = "PLATFORM_DATA_DIR";

/**
 * Chooses the folder that the platform gives the project: that of a platform in `./data`, or of the one that the project has
 * joined. Otherwise, and if the variable PLATFORM_DATA_DIR is set, the service's own default stays.
 */
export function chooseProjectData(folder: string): void {
  if ((process.env[VARIABLE] ?? "") !== "") return;
  const name = readName(folder);
  if (name === undefined) return;
  const own = getProjectData(resolve("data"), name);
  const host = existsSync(own) ? undefined : findHost(folder);
  const data = host === undefined ? own : getProjectData(host.dataDir, name);
  if (!existsSync(data)) return;
  process.env[VARIABLE] = data;
  process.stderr.write(`platform: databases of ${name} in ${formatFolder(data)}\n`);
}

// A service whose name cannot be used under a platform has never run there.
function readName(folder: string): string | undefined {
  try {
    return findProject(folder, [])?.name;
  } catch {
    return undefined;
  }
}
