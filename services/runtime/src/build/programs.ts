// The built form of the platform's programs: one module per program and thread, with source maps of the sources.
import { globSync, mkdirSync, writeFileSync } from "node:fs";
import { isAbsolute, join, relative, sep } from "node:path";
import { loadBundler } from "./bundler.ts";
import { createPlaces, type PlaceOptions } from "./module-place.ts";
import { nameThread } from "./thread-name.ts";

/** A module that is started: the main module of a program, a thread, or a child process. */
interface Entry {
  /** Absolute path of its source. */
  readonly source: string;
  /** Name of its file, without `.js`. */
  readonly name: string;
  /** Specifier of a program. */
  readonly specifier?: string;
}

/** The programs: their packages and the names of their files. */
const PROGRAMS = ["runtime", "gate", "auth", "vault", "pulse", "notify", "tunnel"];
/** The program that starts the others. */
export const SUPERVISOR = "runtime";
/** It determines the installed packages. */
const LOCK_FILE = "package-lock.json";
/** Another builder writes another build. */
const BUILDER = [
  "build-services",
  "bundler",
  "module-place",
  "programs",
  "project-process",
  "library",
  "assets",
  "embed-files",
  "syntax",
  "thread-name",
].map((name) => `services/runtime/src/build/${name}.ts`);
const INSTALLED = /[/\\]node_modules[/\\]/;
/** Name of the module that runs a project under `platform up`. */
export const SUPERVISED = "supervised";
/** Modules that are started as threads, or as child processes. */
const THREADS = [
  "{packages,services}/*/src/**/*-thread.ts",
  "{packages,services}/*/src/**/*-child.ts",
  "services/gate/src/listen/worker.ts",
];
/**
 * Packages that stay outside: native addons, the bundler, and the package of services, of which a project's modules and
 * this program must share one instance.
 */
const EXTERNAL = [/^@node-rs\//, /^rolldown(?:\/|$)/, /^@platform\/service(?:\/|$)/];
/** Addons that packages use if they are present, and do without otherwise. */
export const OPTIONAL_ADDONS: readonly string[] = [
  "bufferutil",
  "utf-8-validate",
  "pg-native",
  "pg-cloudflare",
];
/** Names stay, for stacks and logs. */
export const COMPACT = {
  compress: false,
  mangle: false,
  codegen: { removeWhitespace: true },
} as const;

/** One character beyond Latin-1 doubles the memory that the text of its module takes, as long as the process runs. */
export const CHARSET = "ascii";

/** The process that loads a project's modules. */
export const WORKER = { path: "services/runtime/src/watch/worker.ts", name: "runtime-worker" };
/** Folder of that process and of the package of services, as which its modules find themselves. */
export const PROJECT_FOLDER = "project";
/** The process that starts that one. */
const STARTED_EVERYWHERE: Readonly<Record<string, string>> = {
  "services/runtime/src/watch/supervised.ts": SUPERVISED,
};
/** Modules that run as sources in a checkout: a package has none, so they are built for it. */
const STARTED: Readonly<Record<string, string>> = {
  ...STARTED_EVERYWHERE,
  [WORKER.path]: WORKER.name,
  "services/runtime/src/language/register.ts": "runtime-register",
  "services/runtime/src/build/mapped-stacks.ts": "runtime-mapped-stacks",
  "examples/hello/main.ts": "hello",
};

/** Options of {@link writePrograms}. */
export interface ProgramsOptions {
  /** Absolute path of the checkout. */
  readonly root: string;
  /** Absolute path of the folder that is written. */
  readonly folder: string;
  /**
   * Absolute path that the folder has in the end, relative to which files beside sources are found; in a package, the same
   * path below the checkout. Default: `folder`.
   */
  readonly place?: string;
  /** True for a package: all that starts is built, and there are no source maps, whose sources it lacks. */
  readonly isAlone?: boolean;
}

/** A written entry. */
interface Written {
  readonly entry: Entry;
  /** Paths of its sources relative to the root, without installed packages. */
  readonly sources: readonly string[];
}

/**
 * Writes the built form of all programs into a folder, which is created. Resolves to the sources of each program, relative
 * to the root: the build is valid while they have not changed. Errors are those of the bundler.
 */
export async function writePrograms(
  options: ProgramsOptions,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { root, folder, place = folder, isAlone = false } = options;
  mkdirSync(folder, { recursive: true });
  const programs = PROGRAMS.map((name): Entry => {
    const source = join(root, `services/${name}/src/main.ts`);
    return { source, name, specifier: `@platform/${name}/main` };
  });
  const threads = listThreads(root);
  const started = Object.entries(isAlone ? STARTED : STARTED_EVERYWHERE).map(
    ([path, name]): Entry => ({ source: join(root, path), name }),
  );
  const places: PlaceOptions = {
    folder: place,
    threads: new Map([
      ...(isAlone
        ? []
        : [[join(root, WORKER.path), `${PROJECT_FOLDER}/${WORKER.name}.js`] as const]),
      ...[...threads, ...started].map(({ source, name }) => [source, `${name}.js`] as const),
    ]),
    startsSources: (id) => id.startsWith(join(root, `services/${SUPERVISOR}/`)),
    programs: new Map(programs.map(({ specifier, name }) => [specifier!, `${name}.js`])),
  };
  const written: Written[] = [];
  for (const entry of [...programs, ...threads, ...started]) {
    written.push({ entry, sources: await writeEntry(entry, options, places) });
  }
  return new Map(programs.map((program) => [program.name, listSources(program, written)]));
}

/** The threads of a checkout; their names are those of built files. */
export function listThreads(root: string): Entry[] {
  return globSync(THREADS, { cwd: root })
    .toSorted()
    .map((path): Entry => {
      return { source: join(root, path), name: nameThread(path.replaceAll(sep, "/")) };
    });
}

// Those of the entry, and of what it starts: the supervisor starts all programs.
function listSources({ name }: Entry, written: readonly Written[]): string[] {
  const own = written.find(({ entry }) => entry.name === name)!.sources;
  const packages = new Set(own.map(findPackage));
  const started = written.filter(({ entry, sources }) => {
    const isOwn = entry.specifier === undefined && packages.has(findPackage(sources[0]!));
    return isOwn || name === SUPERVISOR;
  });
  return completeSources([...own, ...started.flatMap((one) => one.sources)]);
}

/** Sources with the files that determine the build as well. */
export function completeSources(sources: Iterable<string>): string[] {
  const all = new Set(sources);
  const manifests = new Set([...all].map((path) => `${findPackage(path)}/package.json`));
  return [...new Set([LOCK_FILE, ...BUILDER, ...manifests, ...all])].toSorted();
}

/** `packages/kernel` of `packages/kernel/src/time/index.ts`. */
function findPackage(path: string): string {
  return path.split("/").slice(0, 2).join("/");
}

/**
 * Writes one module with all that it imports, alone: modules in one scope are faster than in shared files. Resolves to the
 * sources, relative to the root.
 */
export async function writeEntry(
  { source, name, specifier }: Entry,
  { root, folder, isAlone = false }: Pick<ProgramsOptions, "root" | "folder" | "isAlone">,
  places: PlaceOptions,
): Promise<string[]> {
  const { rolldown } = await loadBundler();
  await using bundler = await rolldown({
    input: source,
    platform: "node",
    external: [...EXTERNAL, ...OPTIONAL_ADDONS],
    plugins: [createPlaces(places)],
    logLevel: "silent",
  });
  const { output } = await bundler.write({
    format: "esm",
    dir: folder,
    entryFileNames: `${name}.main.js`,
    chunkFileNames: `${name}.[name]-[hash].js`,
    comments: false,
    minify: COMPACT,
    charset: CHARSET,
    sourcemap: !isAlone,
    sourcemapExcludeSources: true,
  });
  const text = specifier === undefined ? formatThread(name, isAlone) : formatProgram(name, isAlone);
  writeFileSync(join(folder, `${name}.js`), text);
  return [relative(root, source).replaceAll(sep, "/"), ...listModules(root, output)];
}

/** The sources of written files relative to the root, without installed packages. */
export function listModules(
  root: string,
  output: readonly { type: string; moduleIds?: readonly string[] }[],
): string[] {
  return output
    .flatMap(({ moduleIds = [] }) => moduleIds)
    .filter((id) => isAbsolute(id) && !INSTALLED.test(id))
    .map((id) => relative(root, id).replaceAll(sep, "/"));
}

/** The maps of a module are read only if they are enabled before it is loaded. */
function formatProgram(name: string, isAlone: boolean): string {
  const load = isAlone
    ? `import { main } from "./${name}.main.js";\nexport { main };`
    : `process.setSourceMapsEnabled(true);\nexport const { main } = await import("./${name}.main.js");`;
  return `${load}\nif (import.meta.main) await main();\n`;
}

// Without maps as an import, so that a bundle can contain it.
function formatThread(name: string, isAlone: boolean): string {
  if (isAlone) return `import "./${name}.main.js";\n`;
  return `process.setSourceMapsEnabled(true);\nawait import("./${name}.main.js");\n`;
}
