// Writes an executable that contains Node and a bundle: a single executable application of Node.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Bundle } from "./bundle.ts";

const OUTPUT_CHARACTERS_MAX = 16_384;
/** Name of the script, which stacks show for frames of packages. */
const MAIN = "service.cjs";

/**
 * Writes the executable for this system; a file with this name is replaced at the end. Returns its size in bytes. Throws
 * if Node cannot write it (https://nodejs.org/api/single-executable-applications.html).
 */
export async function writeExecutable(bundle: Bundle, path: string): Promise<number> {
  if (process.versions["bun"] !== undefined) {
    throw new Error("Executables are built by Node only: unset PLATFORM_RUNTIME.");
  }
  mkdirSync(dirname(path), { recursive: true });
  // In the folder of the executable: it is renamed at the end.
  const folder = mkdtempSync(join(dirname(path), ".platform-build-"));
  try {
    const output = join(folder, basename(path));
    const map = join(folder, "service.map");
    writeFileSync(join(folder, MAIN), bundle.code);
    writeFileSync(map, bundle.map);
    const config = {
      main: MAIN,
      output,
      disableExperimentalSEAWarning: true,
      useCodeCache: true,
      assets: { ...bundle.assets, "source-map": map },
    };
    writeFileSync(join(folder, "config.json"), JSON.stringify(config));
    await runNode(folder, ["--build-sea", "config.json"]);
    renameSync(output, path);
    return statSync(path).size;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runNode(cwd: string, args: readonly string[]): Promise<void> {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(process.execPath, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (piece: string) => {
      text = (text + piece).slice(-OUTPUT_CHARACTERS_MAX);
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`Node could not write the executable: ${text.trim()}`);
}
