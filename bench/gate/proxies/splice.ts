// A bare splice of sockets in TypeScript: not a proxy, but the floor that the runtime itself sets.
import { existsSync } from "node:fs";
import { startPinned } from "../../harness/process.ts";
import { findRuntime, type RuntimeName } from "../runtime.ts";
import type { Proxy } from "./proxy.ts";

/** The floor on one runtime. Reads no byte of what it passes on. */
export function makeSplice(runtime: RuntimeName): Proxy {
  const command = findRuntime(runtime);
  return {
    name: `splice, no proxy (${runtime})`,
    isOurs: false,
    explainAbsence: () => (existsSync(command) ? undefined : `${runtime} is not installed`),
    readVersion: () => "",
    start: (setup) =>
      startPinned({
        name: `splice on ${runtime}`,
        command,
        args: [
          new URL("splice-server.ts", import.meta.url).pathname,
          String(setup.port),
          String(setup.upstreamPort),
        ],
        cores: setup.cores,
      }),
  };
}
