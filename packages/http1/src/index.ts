// The package's door: what users of the engine may import.
export { createEngine } from "./engine/engine.ts";
export type { Engine, EngineOptions } from "./engine/engine.ts";
export type * from "./contract/forward.ts";
export { compilePlan } from "./forward/plan.ts";
export * from "./parse/index.ts";
export type * from "./contract/server.ts";
export type * from "./contract/exchange.ts";
export { createServer } from "./server/server.ts";
export type * from "./contract/upstream.ts";
export { createUpstreamPool } from "./upstream/pool.ts";
export * from "./write/index.ts";
