// The package's door: fenced WebAssembly guests that turn bytes into bytes.
export { GuestError } from "./errors.ts";
export type { GuestErrorCode } from "./errors.ts";
export type { GuestAbi } from "./module/abi.ts";
export { GuestPool } from "./pool/guest-pool.ts";
export type { GuestModule, GuestPoolOptions } from "./pool/guest-pool.ts";
