// Bundles a service and all that it imports into one module, with a source map of the author's files.
import { existsSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import type { OutputChunk, Plugin, RolldownError, RolldownLog } from "rolldown";
import { compileService } from "../language/compile.ts";
import { createImportProblem, createMissingImport } from "../language/import-problem.ts";
import { CompileError, formatProblem } from "../language/source-problem.ts";
import { AssetError, Assets } from "./assets.ts";
import { loadBundler } from "./bundler.ts";
import { embedFiles, findImported } from "./embed-files.ts";
import { META_NAME, toScript, type BuildForm } from "./script.ts";
import { keepSources } from "./source-map.ts";

/** Options of {@link bundleService}. */
export interface BundleOptions {
  /** Absolute path of the service file. */
  readonly file: string;
  /** Name and version of the service, which has no package.json later. */
  readonly identity: { readonly name: string; readonly version: string };
  readonly form: BuildForm;
  readonly onWarning: (text: string) => void;
}

/** A bundled service. */
export interface Bundle {
  /** A script, see `toScript`. */
  readonly code: string;
  /** Source map as JSON: the author's files only, relative to the working directory. */
  readonly map: string;
  /** Served files by the names of their assets: absolute paths. */
  readonly assets: Readonly<Record<string, string>>;
  /** True if the service declares databases. */
  readonly hasDatabase: boolean;
}

/** Thrown if a service cannot be bundled; the message names the place and the remedy. */
export class BundleError extends Error {}

const ENTRY = "\0platform:entry";
const IDENTITY = "\0platform:identity";
/** The module of the entry that is imported for its effect. */
const ENTRY_EFFECTS = /mapped-stacks(?:\.main)?\.[jt]s$/;
const BUILTIN = "\0platform:builtin:";
const OWN_PACKAGE = /^@platform\/service(?:\/.*)?$/;
const SERVICE_FILE = /\.service\.[tj]s$/;
const SCRIPT = /\.[cm]?[tj]sx?$/;
/** Files that are not the author's: installed packages and this installation. */
const FOREIGN = /[/\\]node_modules[/\\]/;
const INSTALLATION = fileURLToPath(new URL("../../../..", import.meta.url));
const OWN_FOLDERS = ["packages", "services", "dist"].map((name) => `${INSTALLATION}${name}/`);
/** Addons that these packages use if they are present, and do without otherwise. */
const OPTIONAL_ADDONS = new Set(["bufferutil", "utf-8-validate", "pg-native"]);

/** Bundles a service. Rejects with a CompileError, a BundleError or a MissingBundlerError. */
export async function bundleService(options: BundleOptions): Promise<Bundle> {
  const { file, onWarning } = options;
  let hasDatabase = false;
  const onDatabase = (): void => void (hasDatabase = true);
  const assets = new Assets();
  const { rolldown } = await loadBundler();
  try {
    await using bundler = await rolldown({
      input: ENTRY,
      platform: "node",
      transform: { define: { "import.meta": META_NAME } },
      plugins: [
        createEntry(options),
        createLoader(options, assets, onDatabase),
        createImportCheck(),
      ],
      // Modules of the platform have no effects when they are imported, so unused ones and their packages are left out.
      treeshake: { moduleSideEffects: (id) => !isOwn(id) },
      onLog: (level, log) => {
        if (level === "warn" && log.id !== undefined && isAuthors(log.id)) {
          onWarning(stripVTControlCharacters(log.message));
        }
      },
    });
    const { output } = await bundler.generate({
      format: "esm",
      codeSplitting: false,
      sourcemap: "hidden",
      comments: false,
      file: resolve("service.mjs"),
    });
    const [{ code, map }] = output as [OutputChunk];
    return {
      code: toScript(code, options.form),
      map: keepSources(map!, isAuthors),
      assets: assets.paths,
      hasDatabase,
    };
  } catch (error) {
    throw describeFailure(error as Error & { errors?: RolldownError[] }, file);
  }
}

/** The modules around the service: its identity comes first, because a file may start the service itself. */
function createEntry({ file, identity }: BundleOptions): Plugin {
  const stacks = fileURLToPath(new URL("mapped-stacks.ts", import.meta.url));
  const sources: Readonly<Record<string, string>> = {
    [ENTRY]: [
      `import ${JSON.stringify(stacks)};`,
      `import ${JSON.stringify(IDENTITY)};`,
      `import ${JSON.stringify(file)};`,
      'import { runDeclaredService } from "@platform/service/host";',
      "await runDeclaredService();",
    ].join("\n"),
    [IDENTITY]: [
      'import { answerCommandLine, declared } from "@platform/service/host";',
      `declared.identity = ${JSON.stringify(identity)};`,
      "answerCommandLine(declared.identity);",
    ].join("\n"),
  };
  return {
    name: "platform:entry",
    resolveId: (source, _, { kind }) => {
      if (source in sources) return source;
      if (OWN_PACKAGE.test(source)) return fileURLToPath(import.meta.resolve(source));
      // Scripts with a code cache have no `import()`.
      return kind === "dynamic-import" && isBuiltin(source) ? `${BUILTIN}${source}` : undefined;
    },
    load: (id) => {
      if (id in sources) return { code: sources[id]!, moduleType: "js" };
      if (!id.startsWith(BUILTIN)) return undefined;
      const name = JSON.stringify(id.slice(BUILTIN.length));
      return { code: `module.exports = process.getBuiltinModule(${name});`, moduleType: "js" };
    },
  };
}

/** Compiles service files, and embeds migrations and other files. */
function createLoader(
  { form, onWarning }: BundleOptions,
  assets: Assets,
  onDatabase: () => void,
): Plugin {
  return {
    name: "platform:loader",
    load: (id) => {
      if (!SERVICE_FILE.test(id) || !isAuthors(id)) return undefined;
      const source = readFileSync(id, "utf8");
      const { code, map, warnings } = compileService(source, relative(process.cwd(), id));
      for (const warning of warnings) onWarning(formatProblem(warning, source));
      return map === null ? { code, moduleType: "ts" } : { code, map, moduleType: "ts" };
    },
    transform(code, id) {
      if (id.startsWith("\0") || FOREIGN.test(id) || !SCRIPT.test(id)) return undefined;
      if (!/readFileSync|database|files/.test(code)) return undefined;
      const lang = /\.[cm]?ts$/.test(id) ? "ts" : id.endsWith(".tsx") ? "tsx" : "jsx";
      const program = this.parse(code, { lang });
      if (isAuthors(id) && findImported(program, "database").size > 0) onDatabase();
      const isContainer = form === "container";
      return embedFiles({ code, id, program, assets, isContainer, onWarning });
    },
  };
}

/**
 * Refuses imports that an executable cannot contain, at the author's import that leads to them: missing ones, and native
 * addons, which are shared libraries.
 */
function createImportCheck(): Plugin {
  /** The import by which a module was first reached. */
  const origins = new Map<string, { importer: string; source: string }>();
  const explain = (source: string, importer: string, message: string): Error => {
    let place = { importer, source };
    while (!isAuthors(place.importer)) {
      const origin = origins.get(place.importer);
      if (origin === undefined) return new BundleError(message);
      place = origin;
    }
    return createImportProblem(place.source, place.importer, message) ?? new BundleError(message);
  };
  return {
    name: "platform:imports",
    resolveId: {
      order: "pre",
      async handler(source, importer = "", { kind }) {
        if (isBuiltin(source) || source.startsWith("\0")) return undefined;
        if (OPTIONAL_ADDONS.has(source) && kind === "require-call") {
          return { id: source, external: true };
        }
        const isFile = source.endsWith(".node");
        if (!isFile && !/^(?:bindings|node-gyp-build|@mapbox\/node-pre-gyp)$/.test(source)) {
          const resolved = await this.resolve(source, importer, { skipSelf: true });
          if (resolved === null && kind === "import-statement" && isAuthors(importer)) {
            throw createMissingImport(source, importer) ?? new BundleError(`${source} is missing`);
          }
          if (resolved?.id.endsWith(".node") !== true) {
            if (resolved !== null && !origins.has(resolved.id)) {
              origins.set(resolved.id, { importer, source });
            }
            return undefined;
          }
        } else if (isFile && importer !== "" && source.startsWith(".")) {
          // Loaders try the names of all systems.
          if (!existsSync(resolve(dirname(importer), source))) return undefined;
        }
        const owner = findPackage(importer) ?? source;
        throw explain(
          source,
          importer,
          `the package ${owner} has a native addon (${source}), which cannot be part of an executable: use a package without one, or deploy with Node and node_modules`,
        );
      },
    },
  };
}

function isAuthors(id: string): boolean {
  return id !== "" && !id.startsWith("\0") && !FOREIGN.test(id) && !isOwn(id);
}

function isOwn(id: string): boolean {
  return OWN_FOLDERS.some((folder) => id.startsWith(folder)) && !ENTRY_EFFECTS.test(id);
}

function findPackage(path: string): string | undefined {
  return /.*[/\\]node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)/.exec(path)?.[1];
}

/** The bundler wraps errors of plugins and adds colors and its own positions. */
function describeFailure(error: Error & { errors?: RolldownError[] }, file: string): Error {
  const causes = [error, ...(error.errors ?? [])].flatMap((one) => [one, one.cause]);
  for (const cause of causes) {
    if (cause instanceof CompileError || cause instanceof BundleError) return cause;
    if (cause instanceof AssetError) return new BundleError(cause.message);
  }
  const messages = (error.errors ?? [error as RolldownLog]).map(({ message, id, loc }) => {
    const place = relative(process.cwd(), loc?.file ?? id ?? file);
    const position = loc === undefined ? "" : `:${loc.line}:${loc.column + 1}`;
    return `${place}${position}: ${stripVTControlCharacters(message)}`;
  });
  return new BundleError(messages.join("\n"), { cause: error });
}
