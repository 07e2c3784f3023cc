// The SQLite databases of projects in a backup: each a copy of one moment, taken while the project uses it.
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { formatSize, type BackupTarget } from "@platform/kernel/backup";
import { dumpDatabase } from "@platform/kernel/db";

/** Projects keep each database as `<name>.sqlite` in the data directory. */
const DATABASE = /^[\w-]+\.sqlite$/;
const STAGING_PREFIX = ".backup-";

/** Adds the databases, and reports each. What was committed before the report is contained. */
export async function addProjectDatabases(
  data: string,
  target: BackupTarget,
  print: (line: string) => void,
): Promise<void> {
  const entries = await readdir(data, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isFile() && DATABASE.test(entry.name));
  if (names.length === 0) return;
  const staging = await mkdtemp(join(data, STAGING_PREFIX));
  try {
    for (const { name } of names) {
      print(`database ${name}: saving`);
      const copy = join(staging, name);
      await dumpDatabase({ url: `sqlite:${join(data, name)}`, file: copy, tables: [] });
      await target.addFile(name, copy);
      const { size } = await stat(copy);
      await rm(copy);
      print(`database ${name}: ${formatSize(size)}`);
    }
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}
