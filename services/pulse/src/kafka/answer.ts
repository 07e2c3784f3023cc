// Maps the broker's errors to the protocol's: one exhaustive table per kind.
import { PlatformError, type ErrorCode as PlatformCode } from "@platform/kernel/errors";
import { LogError, type LogErrorCode } from "@platform/log";
import type { GroupError } from "../consumer-group/index.ts";
import { ERROR_CODES, type ErrorCode } from "./protocol/error-codes.ts";

const GROUP_ANSWERS: Record<GroupError, ErrorCode> = {
  "coordinator-overloaded": ERROR_CODES.coordinatorNotAvailable,
  "fenced-instance-id": ERROR_CODES.fencedInstanceId,
  "group-max-size-reached": ERROR_CODES.groupMaxSizeReached,
  "illegal-generation": ERROR_CODES.illegalGeneration,
  "inconsistent-group-protocol": ERROR_CODES.inconsistentGroupProtocol,
  "invalid-session-timeout": ERROR_CODES.invalidSessionTimeout,
  "member-id-required": ERROR_CODES.memberIdRequired,
  "metadata-too-large": ERROR_CODES.invalidRequest,
  "rebalance-in-progress": ERROR_CODES.rebalanceInProgress,
  "unknown-member-id": ERROR_CODES.unknownMemberId,
};

const LOG_ANSWERS: Record<LogErrorCode, ErrorCode> = {
  "invalid-batch": ERROR_CODES.corruptMessage,
  "invalid-argument": ERROR_CODES.invalidRequest,
  "unknown-topic": ERROR_CODES.unknownTopicOrPartition,
  "topic-exists": ERROR_CODES.topicAlreadyExists,
  "offset-out-of-range": ERROR_CODES.offsetOutOfRange,
  "out-of-order-sequence": ERROR_CODES.outOfOrderSequenceNumber,
  "producer-fenced": ERROR_CODES.invalidProducerEpoch,
  // Kafka's answer to a batch older than the five it keeps; DUPLICATE_SEQUENCE_NUMBER would count as success.
  "duplicate-sequence": ERROR_CODES.outOfOrderSequenceNumber,
  // Clients retry after these errors, as they should.
  overloaded: ERROR_CODES.requestTimedOut,
  "disk-full": ERROR_CODES.kafkaStorageError,
  "disk-failed": ERROR_CODES.kafkaStorageError,
  corrupt: ERROR_CODES.kafkaStorageError,
  "needs-repair": ERROR_CODES.kafkaStorageError,
  "quarantine-full": ERROR_CODES.kafkaStorageError,
  "too-large": ERROR_CODES.messageTooLarge,
  "cold-unavailable": ERROR_CODES.kafkaStorageError,
  "unsupported-version": ERROR_CODES.kafkaStorageError,
  locked: ERROR_CODES.kafkaStorageError,
  closed: ERROR_CODES.kafkaStorageError,
};

/** The error code of a rejection by a group; 0 for none. */
export function toGroupAnswer(error: GroupError | undefined): ErrorCode {
  return error === undefined ? ERROR_CODES.none : GROUP_ANSWERS[error];
}

/** Answer to a failure: the code, and a text if the protocol has a field for it. */
export interface Answer {
  errorCode: ErrorCode;
  errorMessage: string | null;
}

/** No error. */
export const FINE: Answer = { errorCode: ERROR_CODES.none, errorMessage: null };

/** Converts an error of the log or of the catalogue; rethrows any other. */
export function toAnswer(error: unknown): Answer {
  if (error instanceof LogError) {
    return { errorCode: LOG_ANSWERS[error.code], errorMessage: error.message };
  }
  if (error instanceof PlatformError) {
    return { errorCode: toPlatformAnswer(error.code), errorMessage: error.message };
  }
  throw error;
}

/** Like `toAnswer`, for writes: if the broker is overloaded, clients should retry. */
export function toProduceAnswer(error: LogError | PlatformError): Answer {
  if (error.code === "overloaded" || error.code === "ERR_BACKPRESSURE") {
    return { errorCode: ERROR_CODES.requestTimedOut, errorMessage: error.message };
  }
  return toAnswer(error);
}

// The kernel's codes are for all services; those that the catalogue never throws indicate a bug.
function toPlatformAnswer(code: PlatformCode): ErrorCode {
  switch (code) {
    case "not_found":
      return ERROR_CODES.unknownTopicOrPartition;
    case "conflict":
      return ERROR_CODES.topicAlreadyExists;
    case "validation_failed":
      return ERROR_CODES.invalidRequest;
    case "offload_compacted":
      return ERROR_CODES.invalidConfig;
    case "payload_too_large":
      return ERROR_CODES.messageTooLarge;
    case "overloaded":
      return ERROR_CODES.policyViolation;
    default:
      return ERROR_CODES.unknownServerError;
  }
}
