// Queries that a project keeps in its folder `queries`: one statement a file.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const FILES_MAX = 500;
const FILE_BYTES_MAX = 262_144;
const ENDING = ".sql";

/** Lists the queries by name; none without the folder. Files that cannot be read or are too large are left out. */
export function listProjectQueries(folder: string): { name: string; sql: string }[] {
  const path = join(folder, "queries");
  let names: string[];
  try {
    names = readdirSync(path).filter((name) => name.endsWith(ENDING));
  } catch {
    return [];
  }
  return names
    .toSorted()
    .slice(0, FILES_MAX)
    .flatMap((name) => {
      try {
        const file = join(path, name);
        if (statSync(file).size > FILE_BYTES_MAX) return [];
        return [{ name: name.slice(0, -ENDING.length), sql: readFileSync(file, "utf8") }];
      } catch {
        return [];
      }
    });
}
