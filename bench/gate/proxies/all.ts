// Who takes part where everybody does.
import type { BenchContext } from "../../harness/case.ts";
import { caddy } from "./caddy.ts";
import { fastify } from "./fastify.ts";
import { haproxy } from "./haproxy.ts";
import { nginx } from "./nginx.ts";
import { makePlatformGate } from "./platform-gate.ts";
import type { Proxy } from "./proxy.ts";

/** Ours on each runtime that is measured, and every peer. */
export function listProxies(context: BenchContext): Proxy[] {
  return [
    ...context.runtimes.map((runtime) => makePlatformGate(runtime)),
    nginx,
    haproxy,
    caddy,
    fastify,
  ];
}
