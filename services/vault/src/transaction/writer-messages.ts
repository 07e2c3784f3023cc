// What main thread and writer thread say to each other.
import type { ErrorCode } from "../model/errors.ts";
import type { StoreErrorDetails } from "../model/store-error.ts";
import type { Operation } from "./operations.ts";
import type { BucketState, IndexTotals, WriterLimits } from "./writer-context.ts";

/** What the writer thread is started with. */
export interface WriterData {
  path: string;
  limits: WriterLimits;
  /** Of a start that is under way already. */
  generation?: number;
}

/** The first message of the writer. */
export interface WriterReady {
  generation: number;
  buckets: BucketState[];
  totals: IndexTotals;
  /** Number of the last group that was committed. */
  commit: number;
  /** The last number in the order of operations. */
  sequence: number;
  /** Drives that lack something. */
  drivesBehind: number[];
}

/** Operations that are committed together. */
export interface GroupRequest {
  operations: Operation[];
  /** Of this group; they rise. */
  commit: number;
  /** Where the order of operations goes on, so that all copies of the index number them alike. */
  sequence: number;
}

/** What became of one operation. */
export type Outcome =
  | { value: unknown }
  | { code: ErrorCode; message: string; details: StoreErrorDetails };

/** What became of a group; outcomes in the order of its operations. */
export interface GroupResponse {
  outcomes: Outcome[];
  /** Whether the group is on the disk; outcomes tell what became of each operation. */
  isCommitted: boolean;
  sequence: number;
  totals: IndexTotals;
  commitMs: number;
  /** Set when the writer has stopped for good. */
  stopped: string | undefined;
}
