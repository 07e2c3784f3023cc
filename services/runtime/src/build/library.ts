// The package of services in JavaScript: one module per face, which share the modules below them.
import { join } from "node:path";
import type { Plugin } from "rolldown";
import { Assets } from "./assets.ts";
import { loadBundler } from "./bundler.ts";
import { embedFiles } from "./embed-files.ts";
import { createPlaces } from "./module-place.ts";
import { CHARSET, COMPACT, listModules, listThreads, OPTIONAL_ADDONS } from "./programs.ts";

/** Options of {@link writeLibrary}. */
export interface LibraryOptions {
  /** Absolute path of the checkout. */
  readonly root: string;
  /** Absolute path of the folder that is written. */
  readonly folder: string;
  /** Path that the folder has in the package. */
  readonly place: string;
  /** Path of the built programs, with their threads, relative to the folder. */
  readonly programs: string;
}

/** The modules that projects and the platform's programs import, by the names of their files. */
export const FACES: readonly string[] = ["index", "testing", "host", "rules"];
const SCRIPT = /\.[cm]?[jt]s$/;

/** Writes the faces as `FACE.js` and what they share; resolves to their sources. Errors are those of the bundler. */
export async function writeLibrary(options: LibraryOptions): Promise<string[]> {
  const { root, folder, place, programs } = options;
  const { rolldown } = await loadBundler();
  const threads = listThreads(root).map(
    ({ source, name }) => [source, `${programs}/${name}.js`] as const,
  );
  await using bundler = await rolldown({
    input: Object.fromEntries(
      FACES.map((face) => [face, join(root, `packages/service/src/${face}.ts`)]),
    ),
    platform: "node",
    external: [/^@node-rs\//, ...OPTIONAL_ADDONS],
    plugins: [
      createEmbedder(),
      createPlaces({
        folder: join(root, place),
        threads: new Map(threads),
        startsSources: () => false,
        programs: new Map(),
      }),
    ],
    logLevel: "silent",
  });
  const { output } = await bundler.write({
    format: "esm",
    dir: folder,
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
    comments: false,
    minify: COMPACT,
    charset: CHARSET,
  });
  return listModules(root, output);
}

/** Files beside modules become part of them: executables of projects contain the package, without files beside it. */
function createEmbedder(): Plugin {
  const assets = new Assets();
  return {
    name: "platform:embedded",
    transform(code, id) {
      if (id.startsWith("\0") || !SCRIPT.test(id) || !code.includes("readFileSync"))
        return undefined;
      const program = this.parse(code, { lang: /\.[cm]?ts$/.test(id) ? "ts" : "js" });
      return embedFiles({ code, id, program, assets, isContainer: false, onWarning: () => {} });
    },
  };
}
