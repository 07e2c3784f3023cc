// The engine of the gateway without the gateway's own steps.
import { existsSync } from "node:fs";
import { startPinned } from "../../harness/process.ts";
import { findRuntime, type RuntimeName } from "../../harness/build.ts";
import type { Proxy } from "./proxy.ts";

/** The engine on one runtime; `env` is added to its environment. */
export function makeEngineAlone(runtime: RuntimeName, env: Record<string, string> = {}): Proxy {
  const command = findRuntime(runtime);
  return {
    name: `engine alone (${runtime})`,
    isOurs: true,
    explainAbsence: () => (existsSync(command) ? undefined : `${runtime} is not installed`),
    readVersion: () => "",
    start: (setup) =>
      startPinned({
        name: `engine on ${runtime}`,
        command,
        args: [
          new URL("engine-server.ts", import.meta.url).pathname,
          String(setup.port),
          String(setup.upstreamPort),
        ],
        cores: setup.cores,
        env,
      }),
  };
}
