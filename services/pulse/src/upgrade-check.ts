// Findings after an upgrade for the operator, read from the files without the running service.
import { existsSync } from "node:fs";
import { openNodeDisk, readTopicNames } from "@platform/log";
import { type LogPlace, findLogFolder } from "./store/folder.ts";
import { isInternal, splitStoredName } from "./topic/name.ts";

/**
 * Topics of the operator, sorted. Programs of this machine could use them without credentials before messaging required
 * credentials of everybody as soon as one is configured.
 */
export async function findOperatorTopics(place: LogPlace): Promise<string[]> {
  const folder = findLogFolder(place);
  if (!existsSync(folder)) return [];
  const names = await readTopicNames(openNodeDisk(folder));
  return names.filter((name) => splitStoredName(name).tenant === "" && !isInternal(name)).sort();
}
