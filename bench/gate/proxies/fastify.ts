// @fastify/http-proxy, a common choice for Node.js (node:http in, undici out).
import { createRequire } from "node:module";
import { startPinned } from "../../harness/process.ts";
import type { Proxy } from "./proxy.ts";

const require = createRequire(import.meta.url);

/** The peer from the same ecosystem. */
export const fastify: Proxy = {
  name: "@fastify/http-proxy",
  isOurs: false,
  explainAbsence: () => undefined,
  readVersion: () => (require("@fastify/http-proxy/package.json") as { version: string }).version,
  start: (setup) =>
    startPinned({
      name: "@fastify/http-proxy",
      command: process.execPath,
      args: [
        new URL("fastify-server.ts", import.meta.url).pathname,
        String(setup.port),
        String(setup.upstreamPort),
        setup.middleware === undefined ? "" : "hook",
      ],
      cores: setup.cores,
      env: { NODE_ENV: "production" },
    }),
};
