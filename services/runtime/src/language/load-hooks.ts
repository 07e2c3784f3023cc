// Loading of service files: compiled when they are imported.
import { readFileSync } from "node:fs";
import nodeModule, { isBuiltin } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { compileService, type Compiled } from "./compile.ts";
import { createMissingImport } from "./import-problem.ts";
import { CompileError, formatProblem } from "./source-problem.ts";

const SERVICE_FILE = /\.service\.[tj]s(?:\?.*)?$/;
/** The file that runs: a built one has the package in its built form beside it. */
const OWN_FILE = pathToFileURL(import.meta.filename).href;
const OWN_PACKAGE = /^@platform\/service(?:\/.*)?$/;
/** Files that are not the author's: installed packages, and this installation. */
const FOREIGN = new RegExp(
  `/node_modules/|^${RegExp.escape(new URL("../../../..", import.meta.url).href)}(?:packages|services|dist)/`,
);

/**
 * Compiles `*.service.ts` and `*.service.js` when they are imported, and resolves `@platform/service` to the package of
 * this installation, so that a lone file needs no package.json. Stacks show the author's lines. `onFile` is called with each
 * file of the project that is loaded, and where one was searched, on Node only.
 */
export function registerServiceFiles(onFile: (path: string) => void = () => {}): void {
  if (process.versions["bun"] !== undefined) {
    registerOnBun();
    return;
  }
  process.setSourceMapsEnabled(true);
  // Not a named import: that would keep all commands from starting on Bun.
  nodeModule.registerHooks({
    resolve: (specifier, context, nextResolve) =>
      OWN_PACKAGE.test(specifier)
        ? nextResolve(specifier, { ...context, parentURL: OWN_FILE })
        : explainMissing(specifier, context.parentURL, () => {
            reportSought(specifier, context.parentURL, onFile);
            return nextResolve(specifier, context);
          }),
    load: (url, context, nextLoad) => {
      if (url.startsWith("file:") && !FOREIGN.test(url)) onFile(fileURLToPath(url));
      if (!url.startsWith("file:") || !SERVICE_FILE.test(url)) return nextLoad(url, context);
      return { format: "module-typescript", source: compileFile(url), shortCircuit: true };
    },
  });
}

/** The parts of Bun's plugins that are used (https://bun.sh/docs/runtime/plugins). */
interface BunPlugins {
  plugin(plugin: { name: string; setup: (build: BunBuild) => void }): void;
}

interface BunBuild {
  onLoad(
    filter: { filter: RegExp },
    load: (file: { path: string }) => { contents: string; loader: "ts" },
  ): void;
  module(name: string, load: () => Promise<{ exports: object; loader: "object" }>): void;
}

// Bun maps no columns of such files, but lines are those of the author.
function registerOnBun(): void {
  const { Bun } = globalThis as unknown as { Bun: BunPlugins };
  Bun.plugin({
    name: "platform:service",
    setup: (build) => {
      build.onLoad({ filter: SERVICE_FILE }, ({ path }) => {
        const { code } = compileWithWarnings(path);
        return { contents: code, loader: "ts" };
      });
      for (const name of ["@platform/service", "@platform/service/testing"]) {
        const file = fileURLToPath(import.meta.resolve(name));
        const load = async () => (await import(file)) as object;
        build.module(name, async () => ({ exports: await load(), loader: "object" }));
      }
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
    const problem = createMissingImport(specifier, fileURLToPath(parent));
    throw problem === undefined ? error : Object.assign(problem, { code });
  }
}

/**
 * Reports where an import is searched: a missing file may be created, and a link in its path may be changed, which the
 * resolved path does not show. Packages: the place beside the file, where npm installs them.
 */
function reportSought(
  specifier: string,
  parent: string | undefined,
  onFile: (path: string) => void,
): void {
  if (parent?.startsWith("file:") !== true || FOREIGN.test(parent)) return;
  const isPath = /^(?:\.{0,2}\/|file:)/.test(specifier);
  const isPackage = /^(?:@[\w.-]+\/)?[\w.-]+(?:\/|$)/.test(specifier);
  if (isPath) {
    const url = URL.parse(specifier, parent);
    if (url?.protocol === "file:") onFile(fileURLToPath(url));
  } else if (isPackage && !isBuiltin(specifier)) {
    const [name = ""] = /^(?:@[\w.-]+\/)?[\w.-]+/.exec(specifier) ?? [];
    onFile(join(dirname(fileURLToPath(parent)), "node_modules", name));
  }
}

function compileFile(url: string): string {
  const { code, map } = compileWithWarnings(fileURLToPath(url));
  if (map === null) return code;
  const { mappings } = JSON.parse(map) as { mappings: string };
  const full = { version: 3, sources: [url], names: [], mappings };
  const encoded = Buffer.from(JSON.stringify(full)).toString("base64");
  return `${code}\n//# sourceMappingURL=data:application/json;base64,${encoded}\n`;
}

function compileWithWarnings(file: string): Compiled {
  const source = readFileSync(file, "utf8");
  const compiled = compileService(source, relative(process.cwd(), file));
  for (const warning of compiled.warnings) {
    process.stderr.write(`${formatProblem(warning, source)}\n`);
  }
  return compiled;
}
