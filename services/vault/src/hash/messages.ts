// What the main thread and a hash thread say to each other.
import type { BodyDigests, ChecksumAlgorithm } from "../model/object.ts";

/** Jobs of type `hash` that one body may have at its thread before it has to wait. */
export const IN_FLIGHT_MAX = 8;

/** What a hash thread is started with. */
export interface HashThreadData {
  memory: WebAssembly.Memory<SharedArrayBuffer>;
  slots: number;
  frames: number;
}

/** Something to do for the body in a slot; jobs of one body are done in their order. */
export type HashJob =
  | { type: "start"; slot: number; algorithms: readonly ChecksumAlgorithm[] }
  /** Whole blocks, but for the last job of a body. Somebody waits for what is urgent. */
  | { type: "hash"; slot: number; at: number; bytes: number; isUrgent: boolean; isLast: boolean }
  | { type: "forget"; slot: number };

/** A job of type `hash` that is done. Bytes of digests come as plain arrays of bytes. */
export interface HashDone {
  slot: number;
  digests: BodyDigests | undefined;
}
