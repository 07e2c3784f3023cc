// Projects of the platform in a workspace, and the program that serves each of them.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";

const PACKAGE = "@platform/service";

/** A program and its arguments. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

/**
 * The project of a file: the nearest folder whose package.json depends on the platform, up to `top`, the folder of the
 * workspace. Undefined for files of other projects and for installed packages.
 */
export function findProject(file: string, top: string): string | undefined {
  if (file.includes(`${sep}node_modules${sep}`)) return undefined;
  for (
    let folder = dirname(file);
    folder === top || folder.startsWith(top.endsWith(sep) ? top : top + sep);
    folder = dirname(folder)
  ) {
    if (dependsOnPlatform(join(folder, "package.json"))) return folder;
    if (folder === dirname(folder)) return undefined;
  }
  return undefined;
}

function dependsOnPlatform(path: string): boolean {
  try {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(path, "utf8")) as {
      dependencies?: Record<string, unknown>;
      devDependencies?: Record<string, unknown>;
    };
    return dependencies?.[PACKAGE] !== undefined || devDependencies?.[PACKAGE] !== undefined;
  } catch {
    // It is missing, or is being written.
    return false;
  }
}

/** The project's language server; undefined while the project has no installed platform. */
export function findServer(folder: string, platform: NodeJS.Platform): Program | undefined {
  const ending = platform === "win32" ? ".cmd" : "";
  const installed = join(folder, `node_modules/.bin/platform${ending}`);
  // A link to an installation that has been removed does not exist.
  if (!existsSync(installed)) return undefined;
  const script = join(folder, `platform${ending}`);
  return { command: existsSync(script) ? script : installed, args: ["lsp"] };
}

/** True for a text that may have statements: others need no server beside the editor's own. */
export function mayHaveStatements(text: string): boolean {
  return text.includes(PACKAGE) && /\bdatabase\s*\(/.test(text);
}
