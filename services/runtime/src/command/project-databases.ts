// The SQLite databases of projects, and of records about them, in a backup: each a copy of one moment, taken while the project uses it.
import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { formatSize, type BackupTarget } from "@platform/kernel/backup";
import { dumpDatabase } from "@platform/kernel/db";
import { STORE_FILE, STORE_FOLDER } from "../data/data-store.ts";
import { listDatabases } from "../projects/former-databases.ts";
import { getProjectData, getProjectsFolder } from "../projects/records.ts";

const STAGING_PREFIX = ".backup-";

/** A database of a project. */
interface ProjectDatabase {
  /** For people: `shop/items.sqlite`; without a project for one of an earlier version that was not moved. */
  readonly label: string;
  /** Path in the data directory. */
  readonly path: string;
}

/** Adds the databases, and reports each. What was committed before the report is contained. */
export async function addProjectDatabases(
  data: string,
  target: BackupTarget,
  print: (line: string) => void,
): Promise<void> {
  const databases = listAll(data);
  if (databases.length === 0) return;
  const staging = await mkdtemp(join(data, STAGING_PREFIX));
  try {
    for (const { label, path } of databases) {
      print(`database ${label}: saving`);
      const copy = join(staging, "copy.sqlite");
      await dumpDatabase({ url: `sqlite:${join(data, path)}`, file: copy, tables: [] });
      await target.addFile(path, copy);
      const { size } = await stat(copy);
      await rm(copy);
      print(`database ${label}: ${formatSize(size)}`);
    }
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

function listAll(data: string): ProjectDatabase[] {
  const former = listDatabases(data).map((name) => ({ label: name, path: name }));
  const folder = getProjectsFolder(data);
  const names = existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    : [];
  const own = names.flatMap(({ name }) =>
    listDatabases(getProjectData(data, name)).map((file) => ({
      label: `${name}/${file}`,
      path: `projects/${name}/${file}`,
    })),
  );
  const store = join(STORE_FOLDER, STORE_FILE);
  const records = existsSync(join(data, store)) ? [{ label: store, path: store }] : [];
  return [...former, ...own, ...records];
}
