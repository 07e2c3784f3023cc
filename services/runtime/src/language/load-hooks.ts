// Loading of service files by Node: compiled when they are imported.
import { readFileSync } from "node:fs";
import nodeModule from "node:module";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { compileService } from "./compile.ts";
import { CompileError, findLineColumn, formatProblem } from "./source-problem.ts";

const SERVICE_FILE = /\.service\.[tj]s(?:\?.*)?$/;
const OWN_PACKAGE = /^@platform\/service(?:\/.*)?$/;
/** Files that are not the author's: installed packages, and this installation. */
const FOREIGN = new RegExp(
  `/node_modules/|^${RegExp.escape(new URL("../../../..", import.meta.url).href)}(?:packages|services)/`,
);

/**
 * Compiles `*.service.ts` and `*.service.js` when they are imported, and resolves `@platform/service` to the package of
 * this installation, so that a lone file needs no package.json. Stacks show the author's lines. `onFile` is called with each
 * file of the project that is loaded. Throws on Bun, which has no such hooks.
 */
export function registerServiceFiles(onFile: (path: string) => void = () => {}): void {
  // Not a named import: that would keep all commands from starting on Bun.
  if (!("registerHooks" in nodeModule)) {
    throw new Error("Service files are loaded by Node only: unset PLATFORM_RUNTIME.");
  }
  process.setSourceMapsEnabled(true);
  nodeModule.registerHooks({
    resolve: (specifier, context, nextResolve) =>
      OWN_PACKAGE.test(specifier)
        ? nextResolve(specifier, { ...context, parentURL: import.meta.url })
        : explainMissing(specifier, context.parentURL, () => nextResolve(specifier, context)),
    load: (url, context, nextLoad) => {
      if (url.startsWith("file:") && !FOREIGN.test(url)) onFile(fileURLToPath(url));
      if (!url.startsWith("file:") || !SERVICE_FILE.test(url)) return nextLoad(url, context);
      return { format: "module-typescript", source: compileFile(url), shortCircuit: true };
    },
  });
}

/** The error of a service file that does not compile; undefined if it does, or if it is no service file. */
export function findCompileError(file: string): CompileError | undefined {
  if (!SERVICE_FILE.test(file)) return undefined;
  try {
    compileService(readFileSync(file, "utf8"), relative(process.cwd(), file));
  } catch (error) {
    if (error instanceof CompileError) return error;
    // Others are reported by the import.
  }
  return undefined;
}

/** Adds the author's position to the error of a missing import. Its code stays, for optional imports that are caught. */
function explainMissing<T>(specifier: string, parent: string | undefined, resolve: () => T): T {
  try {
    return resolve();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const isOwn = parent?.startsWith("file:") === true && !FOREIGN.test(parent);
    if (code !== "ERR_MODULE_NOT_FOUND" || !isOwn) throw error;
    const file = fileURLToPath(parent);
    const source = readFileSync(file, "utf8");
    const found = new RegExp(`(["'])${RegExp.escape(specifier)}\\1`).exec(source);
    if (found === null) throw error;
    const message = /^[./]/.test(specifier)
      ? `there is no file ${specifier}`
      : `the package ${specifier} is not installed: npm install ${specifier}`;
    const position = findLineColumn(source, found.index);
    const path = relative(process.cwd(), file);
    const problem = { path, ...position, severity: "error", message } as const;
    throw Object.assign(new CompileError([problem], source), { code });
  }
}

function compileFile(url: string): string {
  const file = fileURLToPath(url);
  const path = relative(process.cwd(), file);
  const source = readFileSync(file, "utf8");
  const { code, map, warnings } = compileService(source, path);
  for (const warning of warnings) process.stderr.write(`${formatProblem(warning, source)}\n`);
  if (map === null) return code;
  const { mappings } = JSON.parse(map) as { mappings: string };
  const full = { version: 3, sources: [url], names: [], mappings };
  const encoded = Buffer.from(JSON.stringify(full)).toString("base64");
  return `${code}\n//# sourceMappingURL=data:application/json;base64,${encoded}\n`;
}
