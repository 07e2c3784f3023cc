// SQLite files of versions in which all projects kept their databases in the data folder itself.
import { existsSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { quoteShell } from "@platform/kernel/config";
import { syncFolderSync } from "@platform/kernel/files";
import { formatFolder } from "../data-folder/data-folder.ts";
import { getProjectData, getProjectsFolder } from "./records.ts";

/** Projects keep each database as `<name>.sqlite`. */
const DATABASE_FILE = /^[\w-]+\.sqlite$/;
/** Files beside a database, which are moved first: transactions that are not in it yet, checksums, and marks of its content. */
const COMPANIONS = [
  (file: string) => `${file}-wal`,
  (file: string) => `${file}-shm`,
  (file: string) => `${file}-journal`,
  (file: string) => `${file}.sums`,
  (file: string) => `${file}.mark`,
  (file: string) => `.${file}.mark`,
  (file: string) => `${file}.lock`,
];

/**
 * Creates the data folder of a project. The first time, databases of an earlier version are moved to it if `isOwner`: they
 * can be of no other project. Returns what was moved, or otherwise the command that moves each file. An interrupted move is
 * completed by the next call.
 */
export function openProjectData(dataDir: string, name: string, isOwner: boolean): string[] {
  const target = getProjectData(dataDir, name);
  mkdirSync(getProjectsFolder(dataDir), { recursive: true, mode: 0o700 });
  const former = listDatabases(dataDir);
  const isNew = !existsSync(target);
  if (!isOwner) {
    if (isNew) mkdirSync(target, { mode: 0o700 });
    return former.map((file) => describeMove(join(dataDir, file), target, name));
  }
  if (!isNew) return [];
  // No name of a project has a dot.
  const draft = `${target}.moving`;
  mkdirSync(draft, { recursive: true, mode: 0o700 });
  for (const file of former) {
    for (const entry of [...COMPANIONS.map((name) => name(file)), file]) {
      if (existsSync(join(dataDir, entry))) renameSync(join(dataDir, entry), join(draft, entry));
    }
  }
  syncFolderSync(draft);
  renameSync(draft, target);
  syncFolderSync(getProjectsFolder(dataDir));
  return former.map(
    (file) =>
      `${formatFolder(join(dataDir, file))} is now ${formatFolder(join(target, file))}: each project has a data folder of its own`,
  );
}

/** Names of the databases in a folder. */
export function listDatabases(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && DATABASE_FILE.test(entry.name))
    .map(({ name }) => name)
    .toSorted();
}

function describeMove(file: string, target: string, name: string): string {
  const from = formatFolder(file);
  const to = formatFolder(target);
  return `${from} is of an earlier version, in which projects shared the folder; if it is of ${name}, stop the platform and run: mv ${quoteShell(from)}* ${quoteShell(`${to}/`)}`;
}
