// The package's door: what users of the engine may import.
export { createEngine } from "./engine/engine.ts";
export type { Engine, EngineOptions } from "./engine/engine.ts";
export type * from "./forward/contract.ts";
export { compilePlan } from "./forward/plan.ts";
export * from "./parse/index.ts";
export type * from "./server/contract.ts";
export type * from "./server/exchange.ts";
export { createServer } from "./server/server.ts";
export type * from "./upstream/contract.ts";
export { createUpstreamPool } from "./upstream/pool.ts";
export * from "./write/index.ts";
