// `platform build`: writes one self-contained executable.
import { existsSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { readIdentity } from "@platform/service/host";
import { bundleService, BundleError } from "../build/bundle.ts";
import { writeExecutable } from "../build/executable.ts";
import { CompileError } from "../language/source-problem.ts";
import { describeMissing, MAIN_FILE } from "./run.ts";

/** Options of `platform build`. */
export interface BuildOptions {
  /** Default `main.service.ts`. */
  readonly file: string | undefined;
  /** Path of the executable; default `dist/NAME`, with the name of package.json. */
  readonly out: string | undefined;
}

/** Builds a service and prints the path and size of the executable. Resolves to the exit code. */
export async function runBuild({ file = MAIN_FILE, out }: BuildOptions): Promise<number> {
  const startedMs = performance.now();
  const path = resolve(file);
  if (!existsSync(path)) throw new Error(describeMissing(file));
  const identity = readIdentity(dirname(path));
  const target = resolve(out ?? join("dist", identity.name));
  if (existsSync(target) && statSync(target).isDirectory()) {
    throw new Error(`${out} is a folder: name the executable, as in --out ${out}/${identity.name}`);
  }
  const onWarning = (text: string): void => void process.stderr.write(`${text}\n`);
  try {
    const bundle = await bundleService({ file: path, identity, onWarning });
    const bytes = await writeExecutable(bundle, target);
    const place = relative(process.cwd(), target);
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
    process.stdout.write(
      `Built ${place} (${Math.ceil(bytes / 1_000_000)} MB) in ${seconds} s.\n\n  ./${place}\n`,
    );
    return 0;
  } catch (error) {
    if (!(error instanceof CompileError || error instanceof BundleError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
}
