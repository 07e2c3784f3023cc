// The built form of the process of a project, in a checkout: with the package of services in its built form, which loads in a
// third of the time. Both are in one folder, whose modules find the package by its name, as those of an installed one do.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FACES, writeLibrary } from "./library.ts";
import { listThreads, PROJECT_FOLDER, WORKER, writeEntry } from "./programs.ts";

const PACKAGE_NAME = "@platform/service";

/** Options of {@link writeProjectProcess}. */
export interface ProjectProcessOptions {
  /** Absolute path of the checkout. */
  readonly root: string;
  /** Absolute path of the folder of the build, as {@link writePrograms} has written it. */
  readonly folder: string;
}

/** Writes it into the folder; resolves to its sources, relative to the root. Errors are those of the bundler. */
export async function writeProjectProcess({
  root,
  folder,
}: ProjectProcessOptions): Promise<string[]> {
  const own = join(folder, PROJECT_FOLDER);
  mkdirSync(own, { recursive: true });
  const faces = FACES.map((face) => [face === "index" ? "." : `./${face}`, `./${face}.js`]);
  const manifest = { name: PACKAGE_NAME, type: "module", exports: Object.fromEntries(faces) };
  writeFileSync(join(own, "package.json"), JSON.stringify(manifest));
  // Without maps: the package knows its own frames in stacks by their folder.
  const library = { root, folder: own, place: own, programs: ".." };
  const places = {
    folder: own,
    threads: new Map(listThreads(root).map(({ source, name }) => [source, `../${name}.js`])),
    programs: new Map<string, string>(),
    startsSources: () => true,
  };
  const entry = { source: join(root, WORKER.path), name: WORKER.name };
  return [
    ...(await writeLibrary(library)),
    ...(await writeEntry(entry, { root, folder: own }, places)),
  ];
}
