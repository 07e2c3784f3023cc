// `platform migrate`: the state of a service's databases, pending migrations, new files.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { declared, nameNextMigration, parseMigrationName } from "@platform/service/host";
import { registerServiceFiles } from "../language/load-hooks.ts";
import { chooseProjectData } from "./project-data.ts";
import { describeMissing, MAIN_FILE } from "./run.ts";

const FOLDER = "migrations";
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** Prints each migration of each database as applied or pending. */
export async function runMigrateStatus(file: string | undefined): Promise<number> {
  await loadService(file);
  for (const database of declared.databases) {
    for (const { id, isApplied } of await database.listMigrations()) {
      process.stdout.write(`${database.name}  ${id}  ${isApplied ? "applied" : "pending"}\n`);
    }
  }
  return 0;
}

/** Applies pending migrations, as a start does, and prints them. */
export async function runMigrateUp(file: string | undefined): Promise<number> {
  await loadService(file);
  for (const database of declared.databases) {
    const pending = (await database.listMigrations()).filter(({ isApplied }) => !isApplied);
    try {
      await database.open();
    } finally {
      await database.close();
    }
    for (const { id } of pending) process.stdout.write(`${database.name}  ${id}  applied\n`);
    if (pending.length === 0) process.stdout.write(`${database.name}  nothing to apply\n`);
  }
  return 0;
}

/** Creates the next file in `./migrations`, named in the style of the others. */
export function runMigrateNew(name: string): number {
  if (!NAME.test(name)) {
    throw new Error(`"${name}": expected lower-case words with dashes, like add-tags`);
  }
  mkdirSync(FOLDER, { recursive: true });
  const files = readdirSync(FOLDER).filter((file) => file.endsWith(".sql"));
  const path = join(FOLDER, nameNextMigration(files.map(parseMigrationName), name, new Date()));
  writeFileSync(path, "-- Statements end with semicolons.\n", { flag: "wx" });
  process.stdout.write(`Created ${path}.\n`);
  return 0;
}

async function loadService(file = MAIN_FILE): Promise<void> {
  const path = resolve(file);
  if (!existsSync(path)) throw new Error(describeMissing(file));
  chooseProjectData(dirname(path));
  registerServiceFiles();
  await import(pathToFileURL(path).href);
  if (declared.databases.length === 0) throw new Error(`${file} declares no database`);
}
