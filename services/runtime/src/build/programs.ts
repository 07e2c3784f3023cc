// The built form of the platform's programs: one module per program and thread, with source maps of the sources.
import { globSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, isAbsolute, join, relative, sep } from "node:path";
import { loadBundler } from "./bundler.ts";
import { createPlaces, type PlaceOptions } from "./module-place.ts";

/** A module that is started: the main module of a program, or a thread. */
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
const SUPERVISOR = "runtime";
/** It determines the installed packages. */
const LOCK_FILE = "package-lock.json";
/** Another builder writes another build. */
const BUILDER = ["build-services", "bundler", "module-place", "programs", "syntax"].map(
  (name) => `services/runtime/src/build/${name}.ts`,
);
const INSTALLED = /[/\\]node_modules[/\\]/;
/** Modules that are started as threads. */
const THREADS = ["{packages,services}/*/src/**/*-thread.ts", "services/gate/src/listen/worker.ts"];
/**
 * Packages that stay outside: native addons, the bundler, and the package of services, of which a project's modules and
 * this program must share one instance.
 */
const EXTERNAL = [/^@node-rs\//, /^rolldown(?:\/|$)/, /^@platform\/service(?:\/|$)/];
/** Addons that packages use if they are present, and do without otherwise. */
const OPTIONAL_ADDONS = ["bufferutil", "utf-8-validate", "pg-native", "pg-cloudflare"];

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
  root: string,
  folder: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  mkdirSync(folder, { recursive: true });
  const programs = PROGRAMS.map((name): Entry => {
    const source = join(root, `services/${name}/src/main.ts`);
    return { source, name, specifier: `@platform/${name}/main` };
  });
  const threads = globSync(THREADS, { cwd: root })
    .toSorted()
    .map((path): Entry => {
      const [, owner = ""] = path.split(sep);
      return { source: join(root, path), name: `${owner}-${basename(path, ".ts")}` };
    });
  const places: PlaceOptions = {
    folder,
    threads: new Map(threads.map(({ source, name }) => [source, `${name}.js`])),
    startsSources: (id) => id.startsWith(join(root, `services/${SUPERVISOR}/`)),
    programs: new Map(programs.map(({ specifier, name }) => [specifier!, `${name}.js`])),
  };
  const written: Written[] = [];
  for (const entry of [...programs, ...threads]) {
    written.push({ entry, sources: await writeEntry(entry, root, places) });
  }
  return new Map(programs.map((program) => [program.name, listSources(program, written)]));
}

// Those of the entry, and of what it starts: the supervisor starts all programs.
function listSources({ name }: Entry, written: readonly Written[]): string[] {
  const own = written.find(({ entry }) => entry.name === name)!.sources;
  const packages = new Set(own.map(findPackage));
  const started = written.filter(({ entry, sources }) => {
    const isOwn = entry.specifier === undefined && packages.has(findPackage(sources[0]!));
    return isOwn || name === SUPERVISOR;
  });
  const sources = new Set([...own, ...started.flatMap((one) => one.sources)]);
  const manifests = new Set([...sources].map((path) => `${findPackage(path)}/package.json`));
  return [...new Set([LOCK_FILE, ...BUILDER, ...manifests, ...sources])].toSorted();
}

/** `packages/kernel` of `packages/kernel/src/time/index.ts`. */
function findPackage(path: string): string {
  return path.split("/").slice(0, 2).join("/");
}

// Each one alone: modules in one scope are faster than in shared files.
async function writeEntry(
  { source, name, specifier }: Entry,
  root: string,
  places: PlaceOptions,
): Promise<string[]> {
  const { folder } = places;
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
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
    sourcemap: true,
    sourcemapExcludeSources: true,
  });
  const text = specifier === undefined ? formatThread(name) : formatProgram(name);
  writeFileSync(join(folder, `${name}.js`), text);
  const modules = output.flatMap((file) => (file.type === "chunk" ? file.moduleIds : []));
  const sources = modules.filter((id) => isAbsolute(id) && !INSTALLED.test(id));
  return [source, ...sources].map((id) => relative(root, id).replaceAll(sep, "/"));
}

/** The maps of a module are read only if they are enabled before it is loaded. */
function formatProgram(name: string): string {
  return `process.setSourceMapsEnabled(true);
export const { main } = await import("./${name}.main.js");
if (import.meta.main) await main();
`;
}

function formatThread(name: string): string {
  return `process.setSourceMapsEnabled(true);
await import("./${name}.main.js");
`;
}
