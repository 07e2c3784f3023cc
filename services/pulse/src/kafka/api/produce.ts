// Produce and InitProducerId.
import { compressionOf, readBatchHeader } from "@platform/log/batch";
import { toAnswer, toProduceAnswer } from "../answer.ts";
import { findTopic, mayUse, type KafkaBroker } from "../broker.ts";
import { ERROR_CODES, type ErrorCode } from "../protocol/error-codes.ts";
import { ProtocolError } from "../protocol/error.ts";
import { initProducerId, produce } from "../protocol/messages/index.ts";
import type { Read, Written } from "../protocol/schema.ts";
import { requireRight } from "../server/access.ts";
import { route, type Route } from "../server/route.ts";
import { mute, principalOf } from "../server/session.ts";
import type { Principal } from "../../user/principal.ts";
import type { RecordRule } from "../../publish/batch-shaper.ts";
import type { ProduceBatch, ProduceOutcome } from "../../publish/produce.ts";

/** First versions with record batches v2, and with zstd (KIP-110). */
const BATCH_VERSION_MIN = 3;
const ZSTD_VERSION_MIN = 7;
/** The attribute of batches with broker timestamps. */
const LOG_APPEND_TIME_FLAG = 8;
const NOT_ALLOWED = "The token lacks the scope pulse:publish.";

type Request = Read<typeof produce.request>;
type PartitionAnswer = Written<typeof produce.response>["topics"][number]["partitions"][number];

function refuseProduce({ acks, topics }: Request) {
  const refusal = refuse(ERROR_CODES.topicAuthorizationFailed, NOT_ALLOWED);
  if (acks === 0) throw new ProtocolError("a Produce without the right to publish");
  const describe = ({ index }: { index: number }) => describeRefusal(index, refusal);
  return {
    topics: topics.map(({ name, partitions }) => ({ name, partitions: partitions.map(describe) })),
  };
}

function describeProducer(errorCode: ErrorCode, producerId = -1, producerEpoch = -1) {
  return { throttleTimeMs: 0, errorCode, producerId, producerEpoch };
}

/** Creates the routes of producers. */
export function createProduceRoutes(broker: KafkaBroker): Route[] {
  return [
    route(
      produce,
      requireRight("publish", refuseProduce, async (request, { session, version }) => {
        const principal = principalOf(session);
        const topics = await produceAll(broker, principal, request, version);
        const throttleTimeMs = broker.quotas.produce.charge(principal.tenant, countBytes(request));
        if (throttleTimeMs > 0) mute(session, throttleTimeMs);
        if (request.acks !== 0) return { topics, throttleTimeMs };
        // The client reads no answer: only the closed connection indicates the error.
        const refused = topics
          .flatMap(({ partitions }) => partitions)
          .find((p) => p.errorCode !== 0);
        if (refused === undefined) return undefined;
        throw new ProtocolError(`error ${refused.errorCode} in a Produce without acknowledgement`);
      }),
    ),

    route(
      initProducerId,
      requireRight(
        "publish",
        () => describeProducer(ERROR_CODES.clusterAuthorizationFailed),
        async ({ transactionalId }) => {
          if (transactionalId !== null) {
            return describeProducer(ERROR_CODES.transactionalIdAuthorizationFailed);
          }
          try {
            const producerId = await broker.producerIds.take();
            return describeProducer(ERROR_CODES.none, producerId, 0);
          } catch (error) {
            return describeProducer(toAnswer(error).errorCode);
          }
        },
      ),
    ),
  ];
}

function countBytes({ topics }: Request): number {
  let bytes = 0;
  for (const { partitions } of topics) {
    for (const { records } of partitions) bytes += records?.length ?? 0;
  }
  return bytes;
}

// Everything up to the append, or up to its turn, is synchronous, so that requests of a connection keep their order.
async function produceAll(
  broker: KafkaBroker,
  principal: Principal,
  request: Request,
  version: number,
) {
  const general = checkRequest(request, version);
  const batches: ProduceBatch[] = [];
  const places = request.topics.map(({ name, partitions }) => {
    const isAllowed = mayUse(principal, "publish", name);
    const topic = findTopic(broker.topics, principal, "publish", name);
    const times = topic && broker.settings.timesOf(topic);
    return {
      name,
      partitions: partitions.map(({ index, records }) => {
        if (general !== undefined) return { index, refusal: general };
        if (!isAllowed) return { index, refusal: refuse(ERROR_CODES.topicAuthorizationFailed) };
        if (topic?.stored.partitions[index] === undefined) {
          return { index, refusal: refuse(ERROR_CODES.unknownTopicOrPartition) };
        }
        const bytesMax = broker.settings.batchBytesMaxOf(topic);
        const refusal = checkRecords(records, version, bytesMax);
        if (refusal !== undefined) return { index, refusal };
        batches.push({ topic, partition: index, batch: records!, times });
        return { index, batch: batches.length - 1 };
      }),
    };
  });
  const outcomes = await broker.producer.produce(batches, request.timeoutMs);
  return places.map(({ name, partitions }) => ({
    name,
    partitions: partitions.map((place) =>
      place.refusal === undefined
        ? describeOutcome(place.index, outcomes[place.batch]!)
        : describeRefusal(place.index, place.refusal),
    ),
  }));
}

interface Refusal {
  errorCode: ErrorCode;
  errorMessage: string | null;
}

function refuse(errorCode: ErrorCode, errorMessage: string | null = null): Refusal {
  return { errorCode, errorMessage };
}

/** Validates the request as a whole. */
function checkRequest({ acks, transactionalId }: Request, version: number): Refusal | undefined {
  if (version < BATCH_VERSION_MIN) {
    return refuse(
      ERROR_CODES.unsupportedVersion,
      "Message sets before version 2 are not supported.",
    );
  }
  if (acks < -1 || acks > 1) return refuse(ERROR_CODES.invalidRequiredAcks);
  if (transactionalId !== null) return REFUSED_TRANSACTION;
  return undefined;
}

const REFUSED_TRANSACTION = refuse(
  ERROR_CODES.transactionalIdAuthorizationFailed,
  "Transactions are not supported.",
);

/** Validates a batch by the protocol's rules; the log checks lengths and checksum. */
function checkRecords(
  records: Buffer | null,
  version: number,
  bytesMax: number,
): Refusal | undefined {
  if (records === null || records.length === 0) {
    return refuse(ERROR_CODES.invalidRecord, "The record batch is missing.");
  }
  if (records.length > bytesMax) {
    return refuse(ERROR_CODES.messageTooLarge, `A batch may have at most ${bytesMax} bytes.`);
  }
  if (records.length > 16 && records[16] !== 2) {
    return refuse(ERROR_CODES.invalidRecord, "Only record batches of magic 2 are supported.");
  }
  const header = readBatchHeader(records);
  // Too short, or an impossible length: the log reports it like any damaged batch.
  if (header === undefined || header.bytes > records.length) return undefined;
  if (header.bytes < records.length) {
    return refuse(ERROR_CODES.invalidRecord, "Each partition requires exactly one record batch.");
  }
  if (header.recordCount < 1 || header.lastOffsetDelta !== header.recordCount - 1) {
    return refuse(
      ERROR_CODES.invalidRecord,
      "The last offset delta must be the record count minus one.",
    );
  }
  if ((header.attributes & LOG_APPEND_TIME_FLAG) !== 0) {
    return refuse(ERROR_CODES.invalidTimestamp, "Only a broker may set the log append time.");
  }
  const compression = compressionOf(header.attributes);
  if (compression === undefined || (compression === "zstd" && version < ZSTD_VERSION_MIN)) {
    return refuse(ERROR_CODES.unsupportedCompressionType);
  }
  return undefined;
}

const RULE_ANSWERS: Record<RecordRule, ErrorCode> = {
  content: ERROR_CODES.invalidRecord,
  size: ERROR_CODES.messageTooLarge,
  time: ERROR_CODES.invalidTimestamp,
};

function describeOutcome(index: number, outcome: ProduceOutcome): PartitionAnswer {
  switch (outcome.kind) {
    case "stored":
      return {
        index,
        errorCode: ERROR_CODES.none,
        baseOffset: outcome.result.baseOffset,
        logStartOffset: outcome.logStart,
      };
    case "transactional":
      return describeRefusal(index, REFUSED_TRANSACTION);
    case "refused":
      return describeRefusal(index, toProduceAnswer(outcome.error));
    case "unfit":
      return {
        ...describeRefusal(index, refuse(RULE_ANSWERS[outcome.rule], outcome.reason)),
        recordErrors: outcome.faults.map((fault) => ({
          batchIndex: fault.index,
          batchIndexErrorMessage: fault.message,
        })),
      };
    default:
      return outcome satisfies never;
  }
}

function describeRefusal(index: number, refusal: Refusal): PartitionAnswer {
  return { index, baseOffset: -1, ...refusal };
}
