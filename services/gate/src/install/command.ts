// The commands `install` and `registry index`.
import { loadConfig } from "@platform/kernel/config";
import { PlatformError } from "@platform/kernel/errors";
import { createLogger } from "@platform/kernel/log";
import { systemClock } from "@platform/kernel/time";
import { FolderLock } from "../access/folder-lock.ts";
import { gateDefinition } from "../config/document.ts";
import type { InstallOptions } from "../config/install-options.ts";
import { checkLoaded } from "../config/load.ts";
import { getStateFolder } from "../config/state-folder.ts";
import { GUEST_NAME } from "../config/route-middleware.ts";
import { MiddlewareStore } from "../control/middleware-store.ts";
import { InstallRefused, fetchFromRegistry } from "./registry-client.ts";
import { indexRegistry } from "./registry-index.ts";

/** Exit codes: done, refused, or trouble with the network or the options. */
const EXIT = { done: 0, refused: 1, trouble: 2 } as const;
const TIMEOUT_MS = 30_000;

type Print = (text: string) => void;
type Env = Readonly<Record<string, string | undefined>>;

/** Runs `platform-gate install NAME[@VERSION]`. Returns the exit code. */
export async function runInstall(
  wanted: string,
  options: InstallOptions,
  print: Print,
  printError: Print,
  env: Env = process.env,
): Promise<number> {
  const [name = "", version] = wanted.split("@", 2);
  if (!GUEST_NAME.test(name)) {
    printError(`${name} is no name of middleware`);
    return EXIT.trouble;
  }
  if (options.registry === undefined) {
    printError("no registry: set PLATFORM_REGISTRY or --registry");
    return EXIT.trouble;
  }
  try {
    const module = await fetchFromRegistry(options.registry, name, version);
    const about = `${name} ${module.version}, sha256 ${module.sha256}, ${module.bytes.length} bytes`;
    if (options.dry_run) print(`${about}: not registered (--dry-run)\n`);
    else if (options.offline) print(await storeOffline(name, module.bytes, options, env));
    else print(await register(name, module.bytes, options));
    return EXIT.done;
  } catch (error) {
    printError(describe(error));
    return error instanceof InstallRefused ? EXIT.refused : EXIT.trouble;
  }
}

/** Runs `platform-gate registry index DIR`. Returns the exit code. */
export async function runRegistryIndex(
  folder: string,
  print: Print,
  printError: Print,
): Promise<number> {
  try {
    const names = await indexRegistry(folder);
    print(`${folder}: ${names.length === 0 ? "no modules" : names.join(", ")}\n`);
    return EXIT.done;
  } catch (error) {
    printError(describe(error));
    return EXIT.refused;
  }
}

async function storeOffline(
  name: string,
  bytes: Buffer,
  { config: path }: InstallOptions,
  env: Env,
): Promise<string> {
  const loaded = loadConfig(gateDefinition, { argv: ["validate", "--config", path], env });
  if (loaded.kind !== "run") throw new Error(`${path} is no configuration of a gateway`);
  const { config, path: found } = checkLoaded(loaded);
  const folder = getStateFolder(config.data_dir, found);
  const lock = new FolderLock(folder, false);
  const store = new MiddlewareStore({
    folder,
    isEphemeral: false,
    lock,
    clock: systemClock,
    log: createLogger({ service: "gate", level: "error" }),
    listRoutes: () => [],
    runExclusive: (work) => work(),
    apply: () => Promise.resolve(),
  });
  try {
    await store.load();
    const { sha256 } = await store.register(name, bytes, "registry", "install");
    return `middleware ${name} written to ${folder}: sha256 ${sha256}, ${bytes.length} bytes\n`;
  } catch (error) {
    if (error instanceof PlatformError && error.code !== "insufficient_storage")
      throw new InstallRefused(error.message, { cause: error });
    throw error;
  } finally {
    lock.release();
  }
}

async function register(
  name: string,
  bytes: Buffer,
  { url, token }: InstallOptions,
): Promise<string> {
  const answer = await fetch(new URL(`/api/v1/admin/middleware/${name}`, url), {
    method: "POST",
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: {
      "Content-Type": "application/wasm",
      "X-Middleware-Source": "registry",
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    },
    body: bytes,
  });
  const text = await answer.text();
  if (answer.ok) return text;
  throw new InstallRefused(`the gateway answers ${answer.status}: ${readDetail(text)}`);
}

function readDetail(text: string): string {
  try {
    const { detail } = JSON.parse(text) as { detail?: unknown };
    return typeof detail === "string" ? detail : text;
  } catch {
    return text;
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
}
