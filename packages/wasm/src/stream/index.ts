// Guests on streams: objects of any size, chains, environment.
export { GuestError, type GuestErrorCode } from "../errors.ts";
export type { GuestModule } from "../module/guest-module.ts";
export { CHAIN_MAX, GuestStreams, type GuestStreamsOptions } from "./stream-pool.ts";
export type { GuestRun, RunResult, StreamedGuest } from "./stream-run.ts";
