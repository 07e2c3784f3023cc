// Our gateway, started as a user would start it.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { askVersion } from "../../../tests/stage/program.ts";
import { startPinned } from "../../harness/process.ts";
import { findRuntime, REPOSITORY, type RuntimeName } from "../runtime.ts";
import type { Proxy, ProxySetup } from "./proxy.ts";

const BIN = join(REPOSITORY, "bin/platform-gate.js");

/** Ours on one runtime; `env` is added to its environment. */
export function makePlatformGate(runtime: RuntimeName, env: Record<string, string> = {}): Proxy {
  return {
    name: `gate (${runtime})`,
    isOurs: true,
    explainAbsence: () => {
      if (!existsSync(BIN)) return "bin/platform-gate.js is not there";
      return existsSync(findRuntime(runtime)) ? undefined : `${runtime} is not installed`;
    },
    readVersion: () => askVersion(findRuntime(runtime), ["--version"]),
    start: (setup) =>
      startPinned({
        name: `gate on ${runtime}`,
        command: process.execPath,
        args: [BIN, "--config", writeGateConfig(setup)],
        cores: setup.cores,
        env: {
          ...env,
          PLATFORM_RUNTIME: runtime,
          ...(setup.jwtSecret === undefined ? {} : { PLATFORM_JWT_SECRET: setup.jwtSecret }),
        },
      }),
  };
}

/** Writes the configuration file of a setup and returns its path. */
function writeGateConfig(setup: ProxySetup): string {
  mkdirSync(setup.folder, { recursive: true });
  const path = join(setup.folder, "config.json");
  const target = `http://127.0.0.1:${setup.upstreamPort}`;
  const routes = (setup.prefixes ?? ["/"]).map((prefix) => ({
    prefix,
    target,
    ...(setup.accessLog ? { access_log: true } : {}),
  }));
  const config = { addr: `127.0.0.1:${setup.port}`, workers: setup.workers, routes };
  writeFileSync(path, JSON.stringify(config));
  return path;
}
