// `platform run`: runs a service file, with `--watch` again after each change.
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { nameProgram } from "@platform/kernel/config";
import { declared, runDeclaredService } from "@platform/service/host";
import { CompileError } from "../language/source-problem.ts";
import { registerServiceFiles } from "../language/load-hooks.ts";
import { MAIN_FILE } from "../project/project.ts";
import { chooseProjectData } from "./project-data.ts";
import { watchService } from "../watch/watch.ts";

/** A service that is being written is not for others. */
const HOST = "127.0.0.1";

export { MAIN_FILE } from "../project/project.ts";

/** Options of `platform run`. */
export interface RunOptions {
  /** Default `main.service.ts`. */
  readonly file: string | undefined;
  readonly watch: boolean;
}

/** Runs a service; resolves when it has started, or with `watch` when it has stopped. */
export async function runRun({ file = MAIN_FILE, watch }: RunOptions): Promise<number> {
  const path = resolve(file);
  if (!existsSync(path)) throw new Error(describeMissing(file));
  chooseProjectData(dirname(path));
  if (watch) {
    const write = (line: string): boolean => process.stderr.write(line);
    const development = { hasDetails: true };
    return watchService({ file: path, write, hostByDefault: HOST, development });
  }
  declared.hostByDefault = HOST;
  registerServiceFiles();
  try {
    await import(pathToFileURL(path).href);
  } catch (error) {
    const text = error instanceof Error && !(error instanceof CompileError) ? error.stack : error;
    process.stderr.write(`${text instanceof CompileError ? text.message : String(text)}\n`);
    return 1;
  }
  await runDeclaredService({ folder: dirname(path) });
  return 0;
}

/** The message for a missing file. */
export function describeMissing(file: string): string {
  return `${file} does not exist; name a file, or create a project with: ${nameProgram("platform")} init NAME`;
}
