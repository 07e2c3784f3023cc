// Sandboxed WebAssembly guests that transform bytes.
export { GuestError, type GuestErrorCode } from "./errors.ts";
export type { GuestAbi } from "./module/abi.ts";
export type { GuestModule } from "./module/guest-module.ts";
export { GuestPool, type GuestPoolOptions } from "./pool/guest-pool.ts";
