// The one error class of the log, with its closed list of codes.

/**
 * Why the log refused or failed.
 *
 * - `invalid-batch`: the bytes are not one whole record batch v2 with a right checksum.
 * - `invalid-argument`: a name, count or configuration outside what the log takes.
 * - `unknown-topic`: no such topic or partition (or it was deleted while the append waited).
 * - `topic-exists`: a topic of that name is there already.
 * - `offset-out-of-range`: below the log start offset or past the durable end.
 * - `out-of-order-sequence`, `producer-fenced`, `duplicate-sequence`: idempotent producers; the
 *   last one is a duplicate too old for its offset to be known.
 * - `overloaded`: more bytes wait for the disk than the configured bound.
 * - `disk-full`: ENOSPC, EDQUOT, or less than the reserve is free; nothing of the append was kept;
 *   writing may be tried again.
 * - `disk-failed`: an fsync failed or the journal cannot be trusted any more; no writes until restart.
 * - `corrupt`: stored bytes do not match their checksum.
 * - `needs-repair`: the folder is damaged so that acknowledged data would be missing if it were
 *   opened; nothing was changed (see `repairLog`).
 * - `quarantine-full`: something has to be set aside and the quarantine is at its bound.
 * - `too-large`: a batch, an entry or a decompressed batch over its bound.
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
  | "locked"
  | "closed";

/** Every failure that the log reports; `code` decides, the message is for people. */
export class LogError extends Error {
  override readonly name = "LogError";
  readonly code: LogErrorCode;

  constructor(code: LogErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
