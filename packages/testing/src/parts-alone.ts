// One part of a service, without the others and without a process of its own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openService, type Service } from "@platform/chassis";
import { loadConfig } from "@platform/kernel/config";
import { createEmbeddedLifecycle, type EmbeddedLifecycle } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";

/** Parts with nothing to do stop at once; the rest is for busy machines. */
const DRAIN_MS_MAX = 5_000;

type Definition = Parameters<typeof loadConfig>[0];
type ServiceConfig = Parameters<typeof openService>[0]["config"];

/** Options of {@link openPartsAlone}. */
export interface PartsOptions {
  /** Variables of the service, given the folder of the test. */
  readonly env: (folder: string) => Readonly<Record<string, string>>;
  /** Its command, if it starts by one. */
  readonly argv?: readonly string[];
  readonly operatorToken?: string;
}

/** A service of which a test opens single parts. */
export interface PartsAlone<Config> {
  /** A folder that is removed after the test. */
  readonly folder: string;
  readonly config: Config;
  readonly service: Service;
  readonly lifecycle: EmbeddedLifecycle;
}

/**
 * Opens the base of a service. What its parts registered for the drain is closed after the test, which fails if that takes
 * longer than five seconds.
 */
export function openPartsAlone<Config extends ServiceConfig>(
  t: { after(done: () => unknown): void },
  definition: Definition,
  { env, argv = [], operatorToken }: PartsOptions,
): PartsAlone<Config> {
  const folder = mkdtempSync(join(tmpdir(), "platform-parts-"));
  const loaded = loadConfig(definition, { argv, env: env(folder) });
  if (loaded.kind !== "run") throw new Error("the variables do not start the service");
  const config = loaded.config as Config;
  const log = createLogger({
    service: definition.service,
    level: "error",
    format: "json",
    write: () => undefined,
  });
  const lifecycle = createEmbeddedLifecycle(log);
  t.after(async () => {
    const startedMs = performance.now();
    await lifecycle.close();
    const elapsedMs = performance.now() - startedMs;
    rmSync(folder, { recursive: true, force: true });
    if (elapsedMs > DRAIN_MS_MAX) throw new Error(`the parts drained for ${elapsedMs} ms`);
  });
  const service = openService({
    name: definition.service,
    version: "1.0.0",
    config,
    operatorToken,
    log,
    lifecycle,
  });
  return { folder, config, service, lifecycle };
}
