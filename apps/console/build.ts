// Builds the page into dist/, compresses its files, and records the hash of the sources.
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const ROOT = import.meta.dirname;
const DIST = join(ROOT, "dist");
const CLIENT = join(ROOT, "../../packages/pulse-client/src/index.ts");
/** Its existence shows servers that a build is in flight. */
const MARK = `${DIST}.building`;
const COMPRESSED = /\.(?:js|css|html|svg)$/;

const sources = hashSources();
if (!process.argv.includes("--if-stale") || readBuiltHash() !== sources) {
  writeFileSync(MARK, "");
  try {
    await buildInto(`${DIST}.${process.pid}`);
  } finally {
    rmSync(MARK, { force: true });
  }
}

/** Hash of everything that the bundle is made of. */
function hashSources(): string {
  const hash = createHash("sha256");
  const files = globSync("{src,public,../../packages/{look,pulse-client}/src}/**/*.*", {
    cwd: ROOT,
  });
  for (const file of [...files, "index.html", "package.json", "vite.config.ts"].sort()) {
    hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)));
  }
  return hash.digest("hex").slice(0, 32);
}

/** Hash of the sources of the built files; undefined if nothing is built. */
function readBuiltHash(): string | undefined {
  try {
    const text = readFileSync(join(DIST, "build.json"), "utf8");
    return (JSON.parse(text) as { sources: string }).sources;
  } catch {
    return undefined;
  }
}

// Servers read whole builds only: the folder is complete before it gets its name.
async function buildInto(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  try {
    // Loading it takes longer than to find that there is nothing to build.
    const { build } = await import("vite");
    await build({
      root: ROOT,
      configFile: join(ROOT, "vite.config.ts"),
      logLevel: "error",
      build: { outDir: folder },
    });
    // Messaging's client for browsers: one module, for pages of any origin.
    await build({
      root: ROOT,
      configFile: false,
      publicDir: false,
      logLevel: "error",
      build: {
        target: "es2022",
        outDir: join(folder, "client"),
        lib: { entry: CLIENT, formats: ["es"], fileName: () => "pulse-client.js" },
        minify: true,
      },
    });
    for (const file of globSync("**/*.*", { cwd: folder })) {
      if (!COMPRESSED.test(file)) continue;
      const bytes = readFileSync(join(folder, file));
      writeFileSync(join(folder, `${file}.gz`), gzipSync(bytes, { level: 9 }));
      const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
      writeFileSync(join(folder, `${file}.br`), brotliCompressSync(bytes, { params }));
    }
    writeFileSync(join(folder, "build.json"), `${JSON.stringify({ sources })}\n`);
    replaceBuilt(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function replaceBuilt(folder: string): void {
  rmSync(DIST, { recursive: true, force: true });
  try {
    renameSync(folder, DIST);
  } catch (error) {
    // Another build, begun at the same time, has just put its result here.
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
  }
}
