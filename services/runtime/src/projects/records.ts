// The projects of a data folder (`projects.json`): those that start with the platform, and those that a killed platform has
// left. Each has a folder of its own for its data.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { formatFolder } from "../data-folder/data-folder.ts";
import { writePrivateFile } from "../data-folder/private-file.ts";

/** Name of the file in the data folder. */
export const RECORDS_FILE = "projects.json";
const FOLDER = "projects";

const recordSchema = z.object({
  name: z.string(),
  /** Absolute path of the project. */
  folder: z.string(),
  /** `own`: in the working directory of `platform up`; `kept` until it is removed; `joined` as long as a terminal is. */
  kind: z.enum(["own", "kept", "joined"]),
  /** Port of its last run, which it gets again if it is free. */
  port: z.int().min(1).max(65_535).optional(),
  /** Absolute path of a file with variables of its process. */
  environment_file: z.string().optional(),
});
const recordsSchema = z.object({ projects: z.array(recordSchema) });

/** A project of a data folder. */
export type ProjectRecord = z.output<typeof recordSchema>;
/** Reason for which a project runs. */
export type ProjectKind = ProjectRecord["kind"];

/** Reads the projects; empty if there is no file. Throws an explanation of a damaged file. */
export function readRecords(dataDir: string): ProjectRecord[] {
  const path = join(dataDir, RECORDS_FILE);
  if (!existsSync(path)) return [];
  try {
    return recordsSchema.parse(JSON.parse(readFileSync(path, "utf8"))).projects;
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof z.ZodError)) throw error;
    throw new Error(
      `${formatFolder(path)} is damaged: restore it from a backup, or delete it and add the kept projects again`,
      { cause: error },
    );
  }
}

/** Replaces the projects. */
export function writeRecords(dataDir: string, projects: readonly ProjectRecord[]): void {
  writePrivateFile(join(dataDir, RECORDS_FILE), { projects });
}

/** The folder of all projects' data. */
export function getProjectsFolder(dataDir: string): string {
  return join(dataDir, FOLDER);
}

/** The folder of a project's data: its SQLite files. */
export function getProjectData(dataDir: string, name: string): string {
  return join(dataDir, FOLDER, name);
}
