// The package's door: what users of the engine may import.
export { FORWARDING_FIELDS, ForwardingFields, joinLines } from "./client/forwarding-fields.ts";
export { readHostName } from "./client/host-name.ts";
export { HexPool, ID_FIELDS, RequestIds } from "./client/request-ids.ts";
export { createEngine } from "./engine/engine.ts";
export type { Engine, EngineOptions } from "./engine/engine.ts";
export type * from "./contract/forward.ts";
export { compilePlan } from "./forward/plan.ts";
export { addRequestTap } from "./forward/request-tap.ts";
export * from "./parse/index.ts";
export type * from "./contract/server.ts";
export type * from "./contract/content.ts";
export type * from "./contract/exchange.ts";
export { HeadChangeError } from "./server/change-head.ts";
export { sendContent } from "./server/send-content.ts";
export { createServer } from "./server/server.ts";
export type * from "./contract/upstream.ts";
export { createUpstreamPool } from "./upstream/pool.ts";
export * from "./write/index.ts";
