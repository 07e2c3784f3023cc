// Messages between the service and the thread that searches vectors.
import type { ErrorCode } from "../model/errors.ts";
import type { VectorIndex } from "../model/vector.ts";
import type { Condition } from "./filter.ts";

/** A search in one bucket. */
export interface VectorQuestion {
  /** The copy of the index to read. */
  readonly path: string;
  readonly bucket: number;
  readonly index: VectorIndex;
  readonly vector: Float32Array;
  readonly k: number;
  /** On the columns of `FILTER_COLUMNS`. */
  readonly condition: Condition | undefined;
  /** Not among the results. */
  readonly exceptKey: string | undefined;
  readonly includesVectors: boolean;
  /** Finds candidates among numbers of 32 bits instead of 8. */
  readonly isExact: boolean;
}

/** A result, nearest first. */
export interface VectorMatch {
  readonly key: string;
  readonly versionId: string;
  readonly distance: number;
  /** JSON objects. */
  readonly metadata: string;
  readonly tags: string;
  readonly vector: Float32Array | undefined;
}

/** The answer to a search. */
export interface VectorAnswer {
  readonly matches: readonly VectorMatch[];
  /** Vectors among which they are the nearest. */
  readonly searched: number;
}

/** From the thread. */
export type VectorResponse =
  | ({ readonly type: "answer" } & VectorAnswer)
  | { readonly type: "stopped" }
  | { readonly type: "failed"; readonly code: ErrorCode; readonly message: string };
