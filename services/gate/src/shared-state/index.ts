// Contract between control plane and data plane: specs, messages, shared memory.
export * from "./access-spec.ts";
export * from "./active-counts.ts";
export * from "./ai-accounts.ts";
export * from "./ai-spec.ts";
export * from "./browser-session.ts";
export * from "./cache-flights.ts";
export { allocateCache } from "./cache-index.ts";
export {
  CACHE_KEY_BYTES_MAX,
  type CacheKey,
  type CacheMoment,
  type CacheRecord,
} from "./cache-memory.ts";
export * from "./cache-store.ts";
export * from "./concurrency-rows.ts";
export * from "./ended-sessions.ts";
export * from "./global-spec.ts";
export * from "./guest-spec.ts";
export * from "./link-figures.ts";
export * from "./link-state.ts";
export * from "./messages.ts";
export * from "./metric-block.ts";
export * from "./operator-token.ts";
export * from "./path-pattern.ts";
export * from "./rate-table.ts";
export * from "./resilience-spec.ts";
export * from "./route-state.ts";
export * from "./route-spec.ts";
export * from "./shared-buffers.ts";
export * from "./step-specs.ts";
export * from "./server-name.ts";
export * from "./slot-table.ts";
export * from "./target-state.ts";
export * from "./tls-spec.ts";
export * from "./token-windows.ts";
