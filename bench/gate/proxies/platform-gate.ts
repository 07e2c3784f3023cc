// Our gateway, started as a user would start it.
import { hash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { askVersion } from "../../../tests/stage/program.ts";
import { startPinned } from "../../harness/process.ts";
import { findBin, findRuntime, type Build } from "../../harness/build.ts";
import type { Proxy, ProxySetup } from "./proxy.ts";

// The maximum, which the rounds of a minute do not reach: each request is counted and none is refused.
const RATE_LIMIT_RPM = 1_000_000;

/** Ours on one runtime; `env` is added to its environment. */
export function makePlatformGate(build: Build, env: Record<string, string> = {}): Proxy {
  return {
    name: `gate (${build.label})`,
    isOurs: true,
    explainAbsence: () => {
      if (!existsSync(findBin(build, "platform-gate"))) return "bin/platform-gate.js is not there";
      return existsSync(findRuntime(build.runtime))
        ? undefined
        : `${build.runtime} is not installed`;
    },
    readVersion: () => askVersion(findRuntime(build.runtime), ["--version"]),
    start: (setup) =>
      startPinned({
        name: `gate on ${build.label}`,
        command: process.execPath,
        args: [findBin(build, "platform-gate"), "--config", writeGateConfig(setup)],
        cores: setup.cores,
        env: {
          ...env,
          PLATFORM_RUNTIME: build.runtime,
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
    ...(setup.rateLimit === true ? { rate_limit_rpm: RATE_LIMIT_RPM } : {}),
    ...(setup.cache === true ? { cache_ttl_seconds: 3_600 } : {}),
    ...(setup.middleware === undefined ? {} : { middleware: "guest" }),
    ...setup.models?.route,
  }));
  if (setup.middleware !== undefined) writeMiddleware(`${path}.state`, setup.middleware);
  const config = {
    addr: `127.0.0.1:${setup.port}`,
    workers: setup.workers,
    ...setup.models?.config,
    routes,
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}

/** Registers a module before the start, in the files of the gateway's state. */
function writeMiddleware(folder: string, module: Buffer): void {
  const sha256 = hash("sha256", module);
  const registered_at = new Date().toISOString();
  const data = [{ name: "guest", versions: [{ sha256, source: "file", registered_at }] }];
  mkdirSync(join(folder, "middleware"), { recursive: true });
  writeFileSync(join(folder, "middleware", `${sha256}.wasm`), module);
  const state = { version: 1, sha256: hash("sha256", JSON.stringify(data)), data };
  writeFileSync(join(folder, "middleware.json"), JSON.stringify(state));
}
