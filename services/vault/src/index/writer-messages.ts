// What main thread and writer thread say to each other.
import type { StoreErrorCode, StoreErrorDetails } from "../store-error.ts";
import type { Operation } from "./operation.ts";
import type { BucketState, IndexTotals, WriterLimits } from "./writer-context.ts";

/** What the writer thread is started with. */
export interface WriterData {
  path: string;
  limits: WriterLimits;
}

/** The first message of the writer. */
export interface WriterReady {
  generation: number;
  buckets: BucketState[];
  totals: IndexTotals;
}

/** Operations that are committed together. */
export interface GroupRequest {
  operations: Operation[];
}

/** What became of one operation. */
export type Outcome =
  | { value: unknown }
  | { code: StoreErrorCode; message: string; details: StoreErrorDetails };

/** What became of a group; outcomes in the order of its operations. */
export interface GroupResponse {
  outcomes: Outcome[];
  totals: IndexTotals;
  commitMs: number;
  /** Set when the writer has stopped for good. */
  stopped: string | undefined;
}
