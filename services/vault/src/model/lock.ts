// Object lock: retention and legal hold of a version, and what a bucket gives new versions.

/** `GOVERNANCE` may be bypassed by who is permitted to, `COMPLIANCE` by nobody. */
export type RetentionMode = "GOVERNANCE" | "COMPLIANCE";

/** A version is kept until `untilMs` (ms since 1970). */
export interface Retention {
  mode: RetentionMode;
  untilMs: number;
}

/** The document of a bucket's object lock; new versions get `defaultRetention` unless they bring their own. */
export interface ObjectLockConfiguration {
  defaultRetention?: { mode: RetentionMode; days: number } | { mode: RetentionMode; years: number };
}
