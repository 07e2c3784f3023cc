// `platform deploy`: an image's Dockerfile, or Kubernetes manifests; with `--apply` they are applied.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { readIdentity } from "@platform/service/host";
import { bundleService, type Bundle } from "../build/bundle.ts";
import { writeExecutable } from "../build/executable.ts";
import { formatDockerfile } from "../deploy/dockerfile.ts";
import { writeImage } from "../deploy/image.ts";
import { createManifests, formatManifests } from "../deploy/manifests.ts";
import { findBuilder, requireKubectl, runTool } from "../deploy/tools.ts";
import { describeMissing, MAIN_FILE } from "./run.ts";

/** Options of `platform deploy`. */
export interface DeployOptions {
  /** Default `main.service.ts`. */
  readonly file: string | undefined;
  readonly target: "docker" | "k8s";
  readonly namespace: string | undefined;
  /** Default `NAME:VERSION`. */
  readonly image: string | undefined;
  /** Default: `sqlite` if the service has a database. */
  readonly database: "sqlite" | "postgres" | undefined;
  /** Prints the files and writes none. */
  readonly dryRun: boolean;
  /** Builds the image, and pushes and applies it for k8s. */
  readonly apply: boolean;
}

const IMAGE_FOLDER = "dist/image";
const DOCKERFILE = "Dockerfile";
const MANIFESTS = "deploy/k8s.yaml";
/** Files with this first line may be replaced. */
const MARK =
  "# Written by `platform deploy`, which replaces this file unless this line is removed.\n";

/** Writes the files, and applies them if that was requested. Resolves to the exit code. */
export async function runDeploy(options: DeployOptions): Promise<number> {
  const { file = MAIN_FILE, target, dryRun, apply } = options;
  checkOptions(options);
  const path = resolve(file);
  if (!existsSync(path)) throw new Error(describeMissing(file));
  const identity = readIdentity(dirname(path));
  const image = options.image ?? `${identity.name}:${identity.version}`;
  const builder = apply ? findBuilder() : undefined;
  if (apply && target === "k8s") requireKubectl();
  const onWarning = (text: string): void => void process.stderr.write(`${text}\n`);
  const bundle = await bundleService({ file: path, identity, form: "executable", onWarning });
  const files: Record<string, string> = { [DOCKERFILE]: formatDockerfile(IMAGE_FOLDER) };
  if (target === "k8s") {
    const storage = bundle.hasDatabase ? (options.database ?? "sqlite") : "none";
    const { namespace } = options;
    files[MANIFESTS] = formatManifests(createManifests({ ...identity, image, namespace, storage }));
  }
  if (dryRun) {
    process.stdout.write(files[target === "k8s" ? MANIFESTS : DOCKERFILE]!);
    return 0;
  }
  writeFiles(files);
  await writeImageFolder(bundle, identity.name);
  process.stdout.write(`Written: ${Object.keys(files).join(", ")}, ${IMAGE_FOLDER}/\n`);
  if (builder === undefined) printNext(target, image);
  else await applyFiles(options, builder, image, identity.name);
  return 0;
}

function checkOptions({ target, namespace, database, dryRun, apply }: DeployOptions): void {
  if (dryRun && apply) throw new Error("--dry-run and --apply exclude each other");
  if (target === "k8s") return;
  if (namespace !== undefined) throw new Error("--namespace requires --target k8s");
  if (database !== undefined) throw new Error("--database requires --target k8s");
}

/** Refuses before anything is written if a file is the author's. */
function writeFiles(files: Readonly<Record<string, string>>): void {
  for (const path of Object.keys(files)) {
    if (existsSync(path) && !readFileSync(path, "utf8").startsWith(MARK)) {
      throw new Error(
        `${path} exists and was not written by platform deploy: move it, or print the new one with --dry-run`,
      );
    }
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${MARK}${text}`);
  }
}

async function writeImageFolder(bundle: Bundle, name: string): Promise<void> {
  const executable = resolve("dist", name === "image" ? "service" : name);
  await writeExecutable(bundle, executable);
  writeImage(executable, resolve(IMAGE_FOLDER));
}

function printNext(target: DeployOptions["target"], image: string): void {
  const commands = [`docker build -t ${image} .`];
  if (target === "docker") commands.push(`docker run -p 3000:3000 -v data:/data ${image}`);
  else {
    if (hasRegistry(image)) commands.push(`docker push ${image}`);
    commands.push(`kubectl apply -f ${MANIFESTS}`);
  }
  process.stdout.write(`\n${commands.map((command) => `  ${command}\n`).join("")}`);
  if (target === "k8s" && !hasRegistry(image)) process.stdout.write(`\n${explainRegistry(image)}`);
}

/** A name without a registry is an image of this machine, as on a local cluster. */
function hasRegistry(image: string): boolean {
  return image.includes("/");
}

function explainRegistry(image: string): string {
  return `The name ${image} has no registry, so the image cannot be pushed. A cluster on other machines requires one: --image REGISTRY/${image}\n`;
}

async function applyFiles(
  { target, namespace }: DeployOptions,
  builder: string,
  image: string,
  name: string,
): Promise<void> {
  await runTool(builder, ["build", "-t", image, "-f", DOCKERFILE, "."]);
  if (target === "docker") return;
  if (hasRegistry(image)) await runTool(builder, ["push", image]);
  else process.stdout.write(`\n${explainRegistry(image)}`);
  await runTool("kubectl", ["apply", "-f", MANIFESTS]);
  const scope = namespace === undefined ? [] : ["--namespace", namespace];
  await runTool("kubectl", ["rollout", "status", `deployment/${name}`, ...scope]);
}
