// Converts errors of the log to errors for publishers.
import { createRetryLaterError, PlatformError } from "@platform/kernel/errors";
import { LogError, type LogErrorCode } from "@platform/log";

/** Converts any error to a PlatformError; unknown ones become `internal`. */
export function toPublishError(thrown: unknown): PlatformError {
  if (thrown instanceof PlatformError) return thrown;
  if (thrown instanceof LogError) return answers[thrown.code](thrown);
  return new PlatformError("internal", "An unexpected error occurred.", { cause: thrown });
}

/** The error for messages in an object store that fails, or is not configured. */
export function createColdError(): PlatformError {
  const detail =
    "These messages are in object storage, which does not answer or is not configured.";
  return createRetryLaterError("cold_unavailable", detail, 5);
}

const answers: Record<LogErrorCode, (error: LogError) => PlatformError> = {
  "invalid-batch": (cause) => new PlatformError("bad_request", cause.message, { cause }),
  "invalid-argument": (cause) => new PlatformError("validation_failed", cause.message, { cause }),
  "unknown-topic": (cause) =>
    new PlatformError("not_found", "The topic has been deleted.", { cause }),
  "topic-exists": (cause) =>
    new PlatformError("conflict", "A topic with this name exists.", { cause }),
  "offset-out-of-range": (cause) =>
    new PlatformError("validation_failed", cause.message, { cause }),
  "out-of-order-sequence": (cause) => new PlatformError("conflict", cause.message, { cause }),
  "producer-fenced": (cause) => new PlatformError("conflict", cause.message, { cause }),
  "duplicate-sequence": (cause) => new PlatformError("conflict", cause.message, { cause }),
  overloaded: () => createRetryLaterError("overloaded", "The disk is too slow for the load.", 1),
  "disk-full": (cause) => new PlatformError("insufficient_storage", "The disk is full.", { cause }),
  "disk-failed": (cause) =>
    new PlatformError("unavailable", "The disk failed; writes are not possible.", { cause }),
  corrupt: (cause) => new PlatformError("internal", "Stored data is damaged.", { cause }),
  "needs-repair": (cause) => new PlatformError("internal", "Stored data is damaged.", { cause }),
  "quarantine-full": (cause) => new PlatformError("internal", cause.message, { cause }),
  "too-large": (cause) => new PlatformError("payload_too_large", cause.message, { cause }),
  "cold-unavailable": () => createColdError(),
  "unsupported-version": (cause) => new PlatformError("internal", cause.message, { cause }),
  locked: (cause) => new PlatformError("internal", "The log is in use.", { cause }),
  closed: () => createRetryLaterError("unavailable", "The broker is stopping.", 1),
};
