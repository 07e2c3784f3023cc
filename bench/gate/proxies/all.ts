// The proxies of cases that compare all of them.
import type { BenchContext } from "../../harness/case.ts";
import { caddy } from "./caddy.ts";
import { fastify } from "./fastify.ts";
import { haproxy } from "./haproxy.ts";
import { nginx } from "./nginx.ts";
import { makePlatformGate } from "./platform-gate.ts";
import type { Proxy } from "./proxy.ts";

/** Our gateway on each measured runtime, and all peers. */
export function listProxies(context: BenchContext): Proxy[] {
  return [
    ...context.builds.map((build) => makePlatformGate(build)),
    nginx,
    haproxy,
    caddy,
    fastify,
  ];
}
