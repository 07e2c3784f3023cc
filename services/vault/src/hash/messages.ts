// Messages between the main thread and a hash thread.
import type { BodyDigests, ChecksumAlgorithm } from "../model/object.ts";

/** Jobs of type `hash` that a body may have in flight before it must wait. */
export const IN_FLIGHT_MAX = 16;

/**
 * Jobs of a body that wait in the thread for other bodies: connections are read in bursts of up to 2 MiB, and fewer would
 * mostly be hashed alone. A body that has waited continues at this number, so that the thread never waits for it.
 */
export const QUEUED_MAX = 12;

/** The data that a hash thread starts with. */
export interface HashThreadData {
  memory: WebAssembly.Memory<SharedArrayBuffer>;
  slots: number;
  frames: number;
}

/** A job for the body in a slot. The jobs of one body run in order. */
export type HashJob =
  | { type: "start"; slot: number; algorithms: readonly ChecksumAlgorithm[] }
  /** Whole blocks, except in the last job of a body. Urgent jobs have a waiting client. */
  | { type: "hash"; slot: number; at: number; bytes: number; isUrgent: boolean; isLast: boolean }
  | { type: "forget"; slot: number };

/** A finished job of type `hash`. Digests arrive as plain byte arrays. */
export interface HashDone {
  slot: number;
  digests: BodyDigests | undefined;
}
