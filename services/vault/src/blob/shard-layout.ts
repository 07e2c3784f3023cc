// The layout of a body in shards.
//
//   stripe  = unit of shard 0 │ unit of shard 1 │ … │ units of parity
//   body    = stripe of k MiB │ stripe of k MiB │ … │ the rest, in k units of the same length, zeros at its end
//
// A shard is a record in its own file: its units one after another are the data of the record, so that each full unit is
// one frame.
import { FRAME_BYTES } from "./layout.ts";

/** Additional fields in the description of a shard. */
export interface ShardDescription {
  /** Two digits, so that all heads have the same length. */
  index: string;
  data: number;
  parity: number;
  /** Stored size of the whole body. */
  stored: number;
}

/** The location and size of a stripe. */
export interface Stripe {
  /** Offset in the body. */
  start: number;
  /** Offset in each shard. */
  shardStart: number;
  /** Bytes of the body in the stripe. */
  dataBytes: number;
  /** Length of each unit. */
  unitBytes: number;
}

/** The stripe that contains the data byte `offset` of a body of `stored` bytes in `data` shards. */
export function locateStripe(stored: number, data: number, offset: number): Stripe {
  const stripeBytes = data * FRAME_BYTES;
  const number = Math.floor(offset / stripeBytes);
  const start = number * stripeBytes;
  const dataBytes = Math.min(stripeBytes, stored - start);
  return {
    start,
    shardStart: number * FRAME_BYTES,
    dataBytes,
    unitBytes: Math.ceil(dataBytes / data),
  };
}

/** Data bytes of each shard. */
export function measureShard(stored: number, data: number): number {
  if (stored === 0) return 0;
  const last = locateStripe(stored, data, stored - 1);
  return last.shardStart + last.unitBytes;
}
