// `platform build`: writes one self-contained executable, or files for an image with Node.
import { existsSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { readIdentity } from "@platform/service/host";
import { bundleService, BundleError } from "../build/bundle.ts";
import { checkContainerFolder, writeContainer } from "../build/container.ts";
import { writeExecutable } from "../build/executable.ts";
import type { BuildForm } from "../build/script.ts";
import { formatScriptDockerfile } from "../deploy/dockerfile.ts";
import { CompileError } from "../language/source-problem.ts";
import { describeMissing, MAIN_FILE } from "./run.ts";

/** Options of `platform build`. */
export interface BuildOptions {
  /** Default `main.service.ts`. */
  readonly file: string | undefined;
  readonly target: BuildForm;
  /** Path; default `dist/NAME`, with the name of package.json, or `dist/container`. */
  readonly out: string | undefined;
}

/** Builds a service and prints the path and size of the result. Resolves to the exit code. */
export async function runBuild({
  file = MAIN_FILE,
  target: form,
  out,
}: BuildOptions): Promise<number> {
  const startedMs = performance.now();
  const path = resolve(file);
  if (!existsSync(path)) throw new Error(describeMissing(file));
  const identity = readIdentity(dirname(path));
  const isContainer = form === "container";
  const target = resolve(out ?? join("dist", isContainer ? "container" : identity.name));
  if (isContainer) checkContainerFolder(target);
  else if (existsSync(target) && statSync(target).isDirectory()) {
    throw new Error(`${out} is a folder: name the executable, as in --out ${out}/${identity.name}`);
  }
  const onWarning = (text: string): void => void process.stderr.write(`${text}\n`);
  try {
    const bundle = await bundleService({ file: path, identity, form, onWarning });
    const bytes = isContainer
      ? writeContainer(bundle, formatScriptDockerfile(), target)
      : await writeExecutable(bundle, target);
    const place = relative(process.cwd(), target);
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
    const next = isContainer
      ? `docker build -t ${identity.name}:${identity.version} ${place}`
      : `./${place}`;
    process.stdout.write(
      `Built ${place} (${Math.ceil(bytes / 1_000_000)} MB) in ${seconds} s.\n\n  ${next}\n`,
    );
    return 0;
  } catch (error) {
    if (!(error instanceof CompileError || error instanceof BundleError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
}
