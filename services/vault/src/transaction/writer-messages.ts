// Messages between the main thread and the writer thread.
import type { Operation } from "./operations.ts";
import type { BucketState, IndexTotals, Outcome, WriterLimits } from "./writer-context.ts";

/** The data that the writer thread starts with. */
export interface WriterData {
  path: string;
  limits: WriterLimits;
  /** Of a start that is already running. */
  generation?: number;
}

/** The first message of the writer. */
export interface WriterReady {
  generation: number;
  buckets: BucketState[];
  totals: IndexTotals;
  /** Number of the last committed group. */
  commit: number;
  /** The last number in the order of operations. */
  sequence: number;
  drivesBehind: number[];
}

/** Operations that are committed together. */
export interface GroupRequest {
  operations: Operation[];
  /** Number of this group; increasing. */
  commit: number;
  /** The sequence to continue from, so that all copies of the index number operations alike. */
  sequence: number;
}

/** The result of a group; outcomes are in the order of its operations. */
export interface GroupResponse {
  outcomes: Outcome[];
  /** True if the group is on disk; `outcomes` has the result of each operation. */
  isCommitted: boolean;
  sequence: number;
  totals: IndexTotals;
  commitMs: number;
  /** Set when the writer has stopped permanently. */
  stopped: string | undefined;
}
