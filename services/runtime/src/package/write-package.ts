// Writes the package: the built programs, what projects import, the console's page, and the files that programs read.
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { FACES, writeLibrary } from "../build/library.ts";
import { SUPERVISED, writePrograms } from "../build/programs.ts";
import { writeDeclarations } from "./declarations.ts";
import { LIBRARY_FOLDER, LOCK_ENTRIES, PACKAGE_NAME, PROGRAMS_FOLDER } from "./layout.ts";
import {
  BUNDLED,
  OPTIONAL,
  readLockEntries,
  type LockEntries,
  type LockEntry,
} from "./lock-entries.ts";

/** The part of package.json that the package takes from that of the checkout. */
interface RootManifest {
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly engines: Readonly<Record<string, string>>;
}

/** Faces with declarations; the others are for the platform's own programs. */
const PUBLIC_FACES = ["index", "testing"];
/** Files and folders as they are in the checkout. */
const COPIED = ["LICENSE", "CHANGELOG.md", "bin", "apps/console/dist", "examples/notes"];
/** Files that programs read beside their modules. */
const ASSETS = "{packages,services}/*/src/**/*.*";
/** Sources, maps and pages of packages. */
const UNUSED = /[/\\]ajv[/\\]lib$|\.map$|[/\\](?:README|CHANGELOG|HISTORY)\.md$/i;
const FONTS = /"(@fontsource-variable\/[^"]+)"/g;
/** Licences of the packages whose code is part of the modules. */
const NOTICES = "THIRD-PARTY-LICENSES.txt";
/** Everything in a package but the packages inside it. */
const CONTENT = ["package.json", "README.md", "LICENSE", NOTICES, "CHANGELOG.md"].concat([
  "bin",
  "dist",
  "packages",
  "services",
  "apps",
  "examples",
]);

/** Writes the package of a checkout whose console is built into a new folder. */
export async function writePackage(root: string, folder: string): Promise<void> {
  const programs = join(folder, PROGRAMS_FOLDER);
  const place = join(root, PROGRAMS_FOLDER);
  const written = await writePrograms({ root, folder: programs, place, isAlone: true });
  // They do not change: the package has no sources.
  for (const name of written.keys()) writeFileSync(join(programs, `${name}.sources.json`), "[]");
  writeFileSync(join(dirname(programs), "current"), `${basename(programs)}\n`);
  const library = join(folder, LIBRARY_FOLDER);
  await writeLibrary({
    root,
    folder: library,
    place: LIBRARY_FOLDER,
    programs: `../services/${basename(programs)}`,
  });
  await writeDeclarations({
    root,
    folder: join(library, "types"),
    faces: PUBLIC_FACES.map((face) => `packages/service/src/${face}.ts`),
  });
  copyFiles(root, folder);
  writeFileSync(join(folder, NOTICES), collectNotices(root));
  const entries = readLockEntries(root);
  for (const name of listFolders(entries)) copyBundled(root, folder, name);
  writeFileSync(join(folder, LOCK_ENTRIES), JSON.stringify(entries));
  const manifest = createManifest(root, entries);
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** Names of all that belongs to a package folder, relative to it. */
export function listContent(folder: string): string[] {
  const text = readFileSync(join(folder, LOCK_ENTRIES), "utf8");
  const names = listFolders(JSON.parse(text) as LockEntries);
  return [...CONTENT, ...names.map((name) => `node_modules/${name}`)];
}

/** The packages inside the package; their folders contain those that only they have. */
function listFolders({ bundled }: LockEntries): string[] {
  return Object.keys(bundled).filter((path) => !path.includes("/node_modules/"));
}

/** The texts of all licences, each once below the packages that have it. */
function collectNotices(root: string): string {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Readonly<Record<string, LockEntry>>;
  };
  const texts = new Map<string, string[]>();
  for (const [path, { dev, link, version, license }] of Object.entries(packages)) {
    if (!path.startsWith("node_modules/") || dev === true || link === true) continue;
    const [file] = globSync("{LICENSE,LICENCE,license,licence}*", { cwd: join(root, path) });
    if (file === undefined) continue;
    const text = readFileSync(join(root, path, file), "utf8").trim();
    const name = `${path.slice("node_modules/".length)} ${version} (${String(license)})`;
    texts.set(text, [...(texts.get(text) ?? []), name]);
  }
  return Array.from(texts, ([text, names]) => `${names.join("\n")}\n\n${text}\n`).join(
    `\n${"-".repeat(80)}\n\n`,
  );
}

function copyFiles(root: string, folder: string): void {
  const assets = globSync(ASSETS, { cwd: root }).filter((path) => !/\.tsx?$/.test(path));
  for (const path of [...COPIED, ...assets]) {
    cpSync(join(root, path), join(folder, path), {
      recursive: true,
      // npm renames files of git when it unpacks.
      filter: (file) => !/[/\\](?:node_modules|data|\.gitignore)$/.test(file),
    });
  }
  cpSync(join(root, "packages/service/README.md"), join(folder, "README.md"));
}

/** Of fonts, the files that the style sheet names. */
function copyBundled(root: string, folder: string, name: string): void {
  const source = join(root, "node_modules", name);
  const target = join(folder, "node_modules", name);
  mkdirSync(dirname(target), { recursive: true });
  if (!name.startsWith("@fontsource-variable/")) {
    cpSync(source, target, { recursive: true, filter: (file) => !UNUSED.test(file) });
    return;
  }
  const sheet = readFileSync(join(root, "packages/look/src/fonts.css"), "utf8");
  const named = Array.from(sheet.matchAll(FONTS), ([, path = ""]) => path);
  const fonts = named
    .filter((path) => path.startsWith(`${name}/`))
    .map((path) => path.slice(name.length));
  for (const path of ["/package.json", "/LICENSE", ...fonts]) {
    if (existsSync(source + path)) cpSync(source + path, target + path);
  }
}

function createManifest(root: string, { bundled, optional }: LockEntries): object {
  const { version, description, license, bin, engines } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  ) as RootManifest;
  const faces = FACES.map((face) => {
    const types = `./${LIBRARY_FOLDER}/types/packages/service/src/${face}.d.ts`;
    const code = `./${LIBRARY_FOLDER}/${face}.js`;
    const target = PUBLIC_FACES.includes(face) ? { types, default: code } : code;
    return [face === "index" ? "." : `./${face}`, target] as const;
  });
  const readVersions = (entries: LockEntries["bundled"], names: readonly string[]) =>
    Object.fromEntries(names.toSorted().map((name) => [name, entries[name]!.version]));
  return {
    name: PACKAGE_NAME,
    version,
    description,
    license,
    type: "module",
    bin,
    exports: {
      ...Object.fromEntries(faces),
      // Runs a project as a part of `platform up`: its arguments and messages are those of the supervisor.
      "./supervised": `./${PROGRAMS_FOLDER}/${SUPERVISED}.js`,
      "./package.json": "./package.json",
    },
    engines,
    dependencies: readVersions(bundled, BUNDLED),
    bundleDependencies: BUNDLED.toSorted(),
    optionalDependencies: readVersions(optional, OPTIONAL),
  };
}
