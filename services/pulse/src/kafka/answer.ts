// From the broker's own errors to the protocol's: one exhaustive table for each kind.
import { PlatformError } from "@platform/kernel/errors";
import type { ErrorCode as PlatformCode } from "@platform/kernel/errors";
import { LogError, type LogErrorCode } from "@platform/log";
import type { GroupError } from "../consumer-group/index.ts";
import { errorCodes, type ErrorCode } from "./protocol/error-codes.ts";

const groupAnswers: Record<GroupError, ErrorCode> = {
  "coordinator-overloaded": errorCodes.coordinatorNotAvailable,
  "fenced-instance-id": errorCodes.fencedInstanceId,
  "group-max-size-reached": errorCodes.groupMaxSizeReached,
  "illegal-generation": errorCodes.illegalGeneration,
  "inconsistent-group-protocol": errorCodes.inconsistentGroupProtocol,
  "invalid-session-timeout": errorCodes.invalidSessionTimeout,
  "member-id-required": errorCodes.memberIdRequired,
  "metadata-too-large": errorCodes.invalidRequest,
  "rebalance-in-progress": errorCodes.rebalanceInProgress,
  "unknown-member-id": errorCodes.unknownMemberId,
};

const logAnswers: Record<LogErrorCode, ErrorCode> = {
  "invalid-batch": errorCodes.corruptMessage,
  "invalid-argument": errorCodes.invalidRequest,
  "unknown-topic": errorCodes.unknownTopicOrPartition,
  "topic-exists": errorCodes.topicAlreadyExists,
  "offset-out-of-range": errorCodes.offsetOutOfRange,
  "out-of-order-sequence": errorCodes.outOfOrderSequenceNumber,
  "producer-fenced": errorCodes.invalidProducerEpoch,
  // As Kafka answers a batch that is older than the five it remembers: DUPLICATE_SEQUENCE_NUMBER would be a success.
  "duplicate-sequence": errorCodes.outOfOrderSequenceNumber,
  // Clients try these again, which is what they are to do.
  overloaded: errorCodes.requestTimedOut,
  "disk-full": errorCodes.kafkaStorageError,
  "disk-failed": errorCodes.kafkaStorageError,
  corrupt: errorCodes.kafkaStorageError,
  "needs-repair": errorCodes.kafkaStorageError,
  "quarantine-full": errorCodes.kafkaStorageError,
  "too-large": errorCodes.messageTooLarge,
  locked: errorCodes.kafkaStorageError,
  closed: errorCodes.kafkaStorageError,
};

/** The code of a group's refusal; 0 for none. */
export function toGroupAnswer(error: GroupError | undefined): ErrorCode {
  return error === undefined ? errorCodes.none : groupAnswers[error];
}

/** What is told of a failure: the code, and words where the protocol has room for them. */
export interface Answer {
  errorCode: ErrorCode;
  errorMessage: string | null;
}

/** No error. */
export const fine: Answer = { errorCode: errorCodes.none, errorMessage: null };

/** The answer to a failure of the log or of the catalogue. Anything else is thrown again. */
export function toAnswer(error: unknown): Answer {
  if (error instanceof LogError) {
    return { errorCode: logAnswers[error.code], errorMessage: error.message };
  }
  if (error instanceof PlatformError) {
    return { errorCode: toPlatformAnswer(error.code), errorMessage: error.message };
  }
  throw error;
}

/** As `toAnswer` for what was to be stored: where the broker does not keep up, clients are to send it again. */
export function toProduceAnswer(error: LogError | PlatformError): Answer {
  if (error.code === "overloaded" || error.code === "ERR_BACKPRESSURE") {
    return { errorCode: errorCodes.requestTimedOut, errorMessage: error.message };
  }
  return toAnswer(error);
}

// The kernel's list is for all services; what the broker's catalogue never throws is a fault of ours.
function toPlatformAnswer(code: PlatformCode): ErrorCode {
  switch (code) {
    case "not_found":
      return errorCodes.unknownTopicOrPartition;
    case "conflict":
      return errorCodes.topicAlreadyExists;
    case "validation_failed":
      return errorCodes.invalidRequest;
    case "payload_too_large":
      return errorCodes.messageTooLarge;
    case "overloaded":
      return errorCodes.policyViolation;
    default:
      return errorCodes.unknownServerError;
  }
}
