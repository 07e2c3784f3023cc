// CreateTopics, DeleteTopics, CreatePartitions.
import { PlatformError } from "@platform/kernel/errors";
import { LogError } from "@platform/log";
import { toKafkaName } from "../../topic/name.ts";
import type { Topic } from "../../topic/topics.ts";
import { FINE, toAnswer, type Answer } from "../answer.ts";
import {
  findTopic,
  findTopicById,
  mayUse,
  NODE_ID,
  readTopicName,
  stateOf,
  type KafkaBroker,
} from "../broker.ts";
import { listTopicConfig, readTopicConfig } from "../config-entries.ts";
import { ERROR_CODES, type ErrorCode } from "../protocol/error-codes.ts";
import { createPartitions, createTopics, deleteTopics } from "../protocol/messages/index.ts";
import { UUID_ZERO, type Read } from "../protocol/schema.ts";
import { requireRight } from "../server/access.ts";
import { route, type RequestContext, type Route } from "../server/route.ts";
import { principalOf } from "../server/session.ts";
import type { Principal } from "../../user/principal.ts";

type WantedTopic = Read<typeof createTopics.request>["topics"][number];
type WantedPartitions = Read<typeof createPartitions.request>["topics"][number];

const NOT_ALLOWED = "The token lacks the scope pulse:manage.";

function refuseDeletion(
  { topics, topicNames }: Read<typeof deleteTopics.request>,
  { version }: RequestContext,
) {
  const wanted = version >= 6 ? topics : topicNames.map((name) => ({ name, topicId: UUID_ZERO }));
  const refusal = answer(ERROR_CODES.topicAuthorizationFailed, NOT_ALLOWED);
  return { throttleTimeMs: 0, topics: wanted.map((topic) => ({ ...topic, ...refusal })) };
}

/** Creates the routes that create, delete and extend topics. */
export function createTopicRoutes(broker: KafkaBroker): Route[] {
  return [
    route(
      createTopics,
      requireRight(
        "manage",
        ({ topics }) => ({
          throttleTimeMs: 0,
          topics: topics.map(({ name }) =>
            refuse(name, ERROR_CODES.topicAuthorizationFailed, NOT_ALLOWED),
          ),
        }),
        async (request, { session }) => {
          const principal = principalOf(session);
          const counts = countNames(request.topics.map(({ name }) => name));
          const created = request.topics.map(async (wanted) =>
            counts.get(wanted.name) === 1
              ? createOne(broker, principal, wanted, request.validateOnly)
              : refuse(wanted.name, ERROR_CODES.invalidRequest, "The name occurs twice."),
          );
          return { throttleTimeMs: 0, topics: await Promise.all(created) };
        },
      ),
    ),

    route(
      deleteTopics,
      requireRight("manage", refuseDeletion, async (request, { session, version }) => {
        const principal = principalOf(session);
        const wanted =
          version >= 6
            ? request.topics
            : request.topicNames.map((name) => ({ name, topicId: UUID_ZERO }));
        const deleted = wanted.map(({ name, topicId }) =>
          deleteOne(broker, principal, name, topicId),
        );
        return { throttleTimeMs: 0, topics: await Promise.all(deleted) };
      }),
    ),

    route(
      createPartitions,
      requireRight(
        "manage",
        ({ topics }) => ({
          throttleTimeMs: 0,
          results: topics.map(({ name }) =>
            refuse(name, ERROR_CODES.topicAuthorizationFailed, NOT_ALLOWED),
          ),
        }),
        async (request, { session }) => {
          const principal = principalOf(session);
          const counts = countNames(request.topics.map(({ name }) => name));
          const results = request.topics.map(async (wanted) => ({
            name: wanted.name,
            ...(counts.get(wanted.name) === 1
              ? await addPartitions(broker, principal, wanted, request.validateOnly)
              : answer(ERROR_CODES.invalidRequest, "The name occurs twice.")),
          }));
          return { throttleTimeMs: 0, results: await Promise.all(results) };
        },
      ),
    ),
  ];
}

function countNames(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function answer(errorCode: ErrorCode, errorMessage: string): Answer {
  return { errorCode, errorMessage };
}

function refuse(name: string, errorCode: ErrorCode, errorMessage: string | null) {
  return { name, errorCode, errorMessage };
}

async function createOne(
  broker: KafkaBroker,
  principal: Principal,
  wanted: WantedTopic,
  validateOnly: boolean,
) {
  const { name } = wanted;
  const own = readTopicName(name);
  if ("reason" in own) return refuse(name, ERROR_CODES.invalidTopic, own.reason);
  if (!mayUse(principal, "manage", name))
    return refuse(name, ERROR_CODES.topicAuthorizationFailed, NOT_ALLOWED);
  const placement = checkPlacement(wanted);
  if (placement !== undefined) return { name, ...placement };
  const config = readTopicConfig(wanted.configs, broker.settings.limits.messageBytesMax);
  if ("reason" in config) return refuse(name, ERROR_CODES.invalidConfig, config.reason);
  const asked = wanted.assignments.length > 0 ? wanted.assignments.length : wanted.numPartitions;
  const partitions = asked === -1 ? broker.topics.partitionsDefault : asked;
  try {
    if (validateOnly) {
      broker.topics.checkCreate(principal.tenant, own.name, partitions);
      return { name, ...FINE, numPartitions: partitions, replicationFactor: 1 };
    }
    const topic = await broker.topics.create(principal.tenant, own.name, {
      partitions,
      config: config.changes,
    });
    await broker.settings.change(topic, config.extras);
    return describeCreated(broker, topic);
  } catch (error) {
    return { name, ...explain(error, ERROR_CODES.invalidPartitions) };
  }
}

function describeCreated(broker: KafkaBroker, topic: Topic) {
  const { name, stored } = topic;
  return {
    name: toKafkaName(name),
    topicId: stored.id.toString("hex"),
    ...FINE,
    numPartitions: stored.partitions.length,
    replicationFactor: 1,
    configs: listTopicConfig(stateOf(broker, topic)).map((entry) => ({
      name: entry.name,
      value: entry.value,
      readOnly: entry.readOnly,
      configSource: entry.configSource,
      isSensitive: false,
    })),
  };
}

/** Checks partitions and replicas: there is one broker, so each partition has one replica, on this broker. */
function checkPlacement(wanted: WantedTopic): Answer | undefined {
  const { assignments, numPartitions, replicationFactor } = wanted;
  if (assignments.length > 0) {
    if (numPartitions !== -1 || replicationFactor !== -1) {
      return answer(ERROR_CODES.invalidRequest, "With assignments both counts must be -1.");
    }
    const indexes = new Set(assignments.map(({ partitionIndex }) => partitionIndex));
    const isWhole = assignments.every((_, index) => indexes.has(index));
    const isHere = assignments.every(({ brokerIds }) => brokerIds.join() === String(NODE_ID));
    if (isWhole && isHere) return undefined;
    return answer(
      ERROR_CODES.invalidReplicaAssignment,
      `Every partition lies on broker ${NODE_ID}.`,
    );
  }
  if (numPartitions !== -1 && numPartitions < 1) {
    return answer(ERROR_CODES.invalidPartitions, "A topic has at least one partition.");
  }
  if (replicationFactor === 1 || replicationFactor === -1) return undefined;
  return answer(
    ERROR_CODES.invalidReplicationFactor,
    "There is one broker, so the factor must be 1.",
  );
}

async function deleteOne(
  broker: KafkaBroker,
  principal: Principal,
  name: string | null,
  topicId: string,
) {
  const isById = name === null;
  const topic = isById
    ? findTopicById(broker.topics, principal, "manage", topicId)
    : findTopic(broker.topics, principal, "manage", name);
  if (topic === undefined) {
    const errorCode = isById ? ERROR_CODES.unknownTopicId : ERROR_CODES.unknownTopicOrPartition;
    return { name, topicId, errorCode };
  }
  const found = { name: toKafkaName(topic.name), topicId: topic.stored.id.toString("hex") };
  try {
    await broker.topics.delete(topic);
    return { ...found, ...FINE };
  } catch (error) {
    return { ...found, ...toAnswer(error) };
  }
}

async function addPartitions(
  broker: KafkaBroker,
  principal: Principal,
  { name, count, assignments }: WantedPartitions,
  validateOnly: boolean,
): Promise<Answer> {
  const topic = findTopic(broker.topics, principal, "manage", name);
  if (topic === undefined)
    return answer(ERROR_CODES.unknownTopicOrPartition, "The topic does not exist.");
  const has = topic.stored.partitions.length;
  if (count <= has) {
    return answer(ERROR_CODES.invalidPartitions, `The topic already has ${has} partitions.`);
  }
  if (assignments !== null) {
    const isHere = assignments.every(({ brokerIds }) => brokerIds.join() === String(NODE_ID));
    if (!isHere || assignments.length !== count - has) {
      return answer(
        ERROR_CODES.invalidReplicaAssignment,
        `Each partition must be on broker ${NODE_ID}.`,
      );
    }
  }
  if (validateOnly) return FINE;
  try {
    await broker.topics.addPartitions(topic, count);
    return FINE;
  } catch (error) {
    return explain(error, ERROR_CODES.invalidPartitions);
  }
}

/** `invalid`: the error code for a number outside the bounds. */
function explain(error: unknown, invalid: ErrorCode): Answer {
  const isInvalid =
    (error instanceof PlatformError && error.code === "validation_failed") ||
    (error instanceof LogError && error.code === "invalid-argument");
  return isInvalid ? answer(invalid, (error as Error).message) : toAnswer(error);
}
