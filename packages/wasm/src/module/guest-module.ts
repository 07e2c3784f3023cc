// A loaded guest module.
import type { GuestAbi } from "./abi.ts";

/** A validated and sandboxed module: a plain value to be passed to `GuestPool.call`. */
export interface GuestModule {
  /** SHA-256 of the original module in hex. */
  readonly hash: string;
  readonly abi: GuestAbi;
  /** The sandboxed module. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}
