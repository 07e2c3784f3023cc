// The error class of the log and its codes.

/**
 * The codes of `LogError`.
 *
 * - `invalid-batch`: the bytes are not exactly one record batch v2 with a valid checksum.
 * - `invalid-argument`: an invalid name, count or setting.
 * - `unknown-topic`: no such topic or partition (or it was deleted while the append waited).
 * - `topic-exists`: a topic with that name exists.
 * - `offset-out-of-range`: below the log start offset or past the durable end.
 * - `out-of-order-sequence`, `producer-fenced`, `duplicate-sequence`: errors of idempotent producers;
 *   the last one is a duplicate whose offset is no longer known.
 * - `overloaded`: the bound of pending bytes, topics or partitions is reached.
 * - `disk-full`: ENOSPC, EDQUOT, or less than the reserve is free; the append was discarded and may
 *   be retried.
 * - `disk-failed`: an fsync failed or the journal cannot be trusted; no writes until restart.
 * - `corrupt`: stored bytes do not match their checksum.
 * - `needs-repair`: opening the damaged folder would lose acknowledged data; nothing was changed
 *   (see `repairLog`).
 * - `quarantine-full`: a file must be quarantined and the quarantine is at its bound.
 * - `too-large`: a batch, an entry or a decompressed batch exceeds its bound.
 * - `cold-unavailable`: the records are in the object store, which does not answer or is not configured.
 * - `unsupported-version`: a newer version of this program wrote the files; nothing was changed.
 * - `locked`: another process has this folder open.
 * - `closed`: the log was closed.
 */
export type LogErrorCode =
  | "invalid-batch"
  | "invalid-argument"
  | "unknown-topic"
  | "topic-exists"
  | "offset-out-of-range"
  | "out-of-order-sequence"
  | "producer-fenced"
  | "duplicate-sequence"
  | "overloaded"
  | "disk-full"
  | "disk-failed"
  | "corrupt"
  | "needs-repair"
  | "quarantine-full"
  | "too-large"
  | "cold-unavailable"
  | "unsupported-version"
  | "locked"
  | "closed";

/** An error of the log. Callers decide by `code`. */
export class LogError extends Error {
  override readonly name = "LogError";
  readonly code: LogErrorCode;

  constructor(code: LogErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
