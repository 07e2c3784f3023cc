// Portkey's gateway for models, which needs Bun: it does not start on Node 26.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findRuntime, REPOSITORY } from "../../harness/build.ts";
import { startPinned } from "../../harness/process.ts";
import type { Proxy } from "./proxy.ts";

const FOLDER = join(REPOSITORY, "bench/peers/portkey/node_modules/@portkey-ai/gateway");

/** The peer for requests to models. */
export const portkey: Proxy = {
  name: "@portkey-ai/gateway",
  isOurs: false,
  explainAbsence: () => {
    if (!existsSync(FOLDER)) return "it is not installed: tools/install-peers portkey";
    return existsSync(findRuntime("bun")) ? undefined : "bun is not installed";
  },
  readVersion: () => {
    const text = readFileSync(join(FOLDER, "package.json"), "utf8");
    return (JSON.parse(text) as { version: string }).version;
  },
  start: (setup) =>
    startPinned({
      name: "@portkey-ai/gateway",
      command: findRuntime("bun"),
      args: [
        "--no-install",
        join(FOLDER, "build/start-server.js"),
        `--port=${setup.port}`,
        "--headless",
      ],
      cores: setup.cores,
      env: { NODE_ENV: "production" },
    }),
};

/** Fields that name the provider of a request. */
export function namePortkeyProvider(upstreamPort: number): Record<string, string> {
  return {
    "x-portkey-provider": "openai",
    "x-portkey-custom-host": `http://127.0.0.1:${upstreamPort}/v1`,
    Authorization: "Bearer none",
  };
}
