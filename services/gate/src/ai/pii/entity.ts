// Personal data and secrets that are found in texts.
import type { RE2JS } from "re2js";
import type { PiiKind } from "../../shared-state/index.ts";

/** Something that was found in a text. */
export interface Entity {
  readonly start: number;
  readonly end: number;
  /** Name in placeholders: `EMAIL` and the like, or that of a pattern. */
  readonly name: string;
}

/** A pattern of the configuration. */
interface PiiPattern {
  readonly name: string;
  readonly pattern: RE2JS;
}

/** Settings of a search. */
export interface PiiSearch {
  readonly kinds: ReadonlySet<PiiKind>;
  readonly patterns: readonly PiiPattern[];
}
