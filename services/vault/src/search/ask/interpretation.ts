// The meaning of a plain question, as it is shown with its answer.

/** An order of results. */
export interface ResultOrder {
  readonly by: "size" | "last_modified";
  readonly direction: "asc" | "desc";
}

/** The meaning of a question. */
export interface Interpretation {
  /** Conditions in the language of `filter.ts`. */
  readonly filters: Readonly<Record<string, unknown>>;
  readonly order?: ResultOrder;
  readonly limit?: number;
  /** The number of objects, or the sum of their sizes, instead of a list. */
  readonly aggregate?: "count" | "size";
  /** The key of an object that results are like. */
  readonly similar?: string;
  /** Words that results are ranked by. */
  readonly text?: string;
}
