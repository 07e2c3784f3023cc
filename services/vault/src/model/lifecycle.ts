// Lifecycle rules as the store applies them.

/** The filter of a rule: all given conditions must hold. */
export interface LifecycleFilter {
  prefix?: string;
  tags?: Readonly<Record<string, string>>;
  /** Strictly larger, in bytes. */
  sizeGreaterThan?: number;
  /** Strictly smaller, in bytes. */
  sizeLessThan?: number;
}

/** One rule. Days are counted as in the object API: an action is due at the midnight (UTC) after that age. */
export interface LifecycleRule {
  id: string;
  enabled: boolean;
  filter: LifecycleFilter;
  /** The rule was put in the older form, with its prefix outside the filter, and is returned in that form. */
  hasOlderForm?: true;
  expiration?: { days: number } | { atMs: number } | { expiredObjectDeleteMarker: boolean };
  noncurrentVersionExpiration?: { days: number; newerVersionsKept?: number };
  abortIncompleteUpload?: { days: number };
  /** Moves objects to another storage class: to the remote that has it. */
  transitions?: readonly (({ days: number } | { atMs: number }) & { storageClass: string })[];
  /** As `transitions`, for noncurrent versions. */
  noncurrentTransitions?: readonly {
    days: number;
    storageClass: string;
    newerVersionsKept?: number;
  }[];
}

/** The minimum object size of transitions, by its names in the API. */
export type TransitionMinimum = "all_storage_classes_128K" | "varies_by_storage_class";

/** The lifecycle configuration of a bucket. */
export interface LifecycleConfiguration {
  rules: readonly LifecycleRule[];
  /** `all_storage_classes_128K` if absent. */
  transitionMinimum?: TransitionMinimum;
}
