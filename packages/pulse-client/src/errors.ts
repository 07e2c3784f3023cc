// The errors of the client.

/** An answer of the broker that is not a success (RFC 9457). */
export interface Problem {
  /** `forbidden`, `validation_failed`, `payload_too_large`, …; `expired` for a message that was queued for too long. */
  code: string;
  detail: string;
  status?: number;
  /** The invalid message of several. */
  index?: number;
}

/**
 * A failure that the program decides about; failures of the network are retried instead. Codes of the client: `queue_full`,
 * `message_too_large`, `expired`, `discarded`, `cleared`, `dropped`, `closed`, `storage_failed`; others are the broker's.
 */
export class PulseClientError extends Error {
  override readonly name = "PulseClientError";
  readonly code: string;
  readonly problem: Problem | undefined;

  constructor(code: string, message: string, options: { problem?: Problem; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.problem = options.problem;
  }

  static of(problem: Problem): PulseClientError {
    return new PulseClientError(problem.code, problem.detail, { problem });
  }
}
