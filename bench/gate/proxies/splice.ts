// Connected sockets in TypeScript: not a proxy, but the lower bound of the runtime.
import { existsSync } from "node:fs";
import { startPinned } from "../../harness/process.ts";
import { findRuntime, type RuntimeName } from "../../harness/build.ts";
import type { Proxy } from "./proxy.ts";

/** Ways of reading and writing: those of the runtime's streams, or those of our engine. */
export type SpliceWays = "streams" | "short";

/** The lower bound on one runtime; does not parse the bytes. */
export function makeSplice(runtime: RuntimeName, ways: SpliceWays): Proxy {
  const command = findRuntime(runtime);
  return {
    name: `splice by ${ways === "short" ? "short ways" : "streams"}, no proxy (${runtime})`,
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
          ways,
        ],
        cores: setup.cores,
      }),
  };
}
