// Object lock: retention and legal hold of a version, and the default of a bucket.

/** `GOVERNANCE` can be bypassed by callers with the permission, `COMPLIANCE` cannot be bypassed. */
export type RetentionMode = "GOVERNANCE" | "COMPLIANCE";

/** A version is protected until `untilMs` (ms since 1970). */
export interface Retention {
  mode: RetentionMode;
  untilMs: number;
}

/** The object lock configuration of a bucket. New versions get `defaultRetention` unless the request sets a retention. */
export interface ObjectLockConfiguration {
  defaultRetention?: { mode: RetentionMode; days: number } | { mode: RetentionMode; years: number };
}
