// Lifecycle rules as the store applies them.

/** Which objects a rule is for: all that is given must hold. */
export interface LifecycleFilter {
  prefix?: string;
  tags?: Readonly<Record<string, string>>;
  /** Strictly larger, in bytes. */
  sizeGreaterThan?: number;
  /** Strictly smaller, in bytes. */
  sizeLessThan?: number;
}

/** One rule. Days are counted as the object API does: an action is due at the midnight (UTC) that follows its age. */
export interface LifecycleRule {
  id: string;
  enabled: boolean;
  filter: LifecycleFilter;
  /** The rule came with its prefix beside the filter, in the older form, and is told so. */
  hasOlderForm?: true;
  expiration?: { days: number } | { atMs: number } | { expiredObjectDeleteMarker: boolean };
  noncurrentVersionExpiration?: { days: number; newerVersionsKept?: number };
  abortIncompleteUpload?: { days: number };
  /** Moves objects to another storage class; carried out by the cold tier, not by the store. */
  transitions?: readonly (({ days: number } | { atMs: number }) & { storageClass: string })[];
  /** As `transitions`, for versions that were replaced. */
  noncurrentTransitions?: readonly {
    days: number;
    storageClass: string;
    newerVersionsKept?: number;
  }[];
}

/** Which objects transitions leave where they are for their size, by the names that the API has for it. */
export type TransitionMinimum = "all_storage_classes_128K" | "varies_by_storage_class";

/** A bucket's lifecycle. */
export interface LifecycleConfiguration {
  rules: readonly LifecycleRule[];
  /** `all_storage_classes_128K` where it is not there. */
  transitionMinimum?: TransitionMinimum;
}
