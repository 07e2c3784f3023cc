// Metadata, DescribeCluster, FindCoordinator. There is one broker: this one.
import { toAnswer } from "../answer.ts";
import {
  findTopic,
  findTopicById,
  leaderEpochOf,
  mayUse,
  NODE_ID,
  readTopicName,
  type KafkaBroker,
} from "../broker.ts";
import { ERROR_CODES, type ErrorCode } from "../protocol/error-codes.ts";
import { describeCluster, findCoordinator, metadata } from "../protocol/messages/index.ts";
import { UUID_ZERO } from "../protocol/schema.ts";
import { allow } from "../server/access.ts";
import { route, type Route } from "../server/route.ts";
import { principalOf } from "../server/session.ts";
import type { Principal } from "../../user/principal.ts";
import { toKafkaName } from "../../topic/name.ts";
import { coversAny } from "../../topic/rights.ts";
import type { Topic } from "../../topic/topics.ts";

const TRANSACTION_KEY_TYPE = 1;

/** Creates the routes of metadata. */
export function createMetadataRoutes(broker: KafkaBroker): Route[] {
  return [
    route(
      metadata,
      allow("any", async (request, { session, version }) => {
        const principal = principalOf(session);
        const wanted = request.topics;
        const isAll = wanted === null || (version === 0 && wanted.length === 0);
        const mayCreate = broker.isAutoCreating && request.allowAutoTopicCreation;
        const topics = isAll
          ? listVisible(broker, principal).map(describeTopic)
          : await Promise.all(
              wanted.map((topic) => findWanted(broker, principal, topic, mayCreate)),
            );
        return {
          brokers: [{ nodeId: NODE_ID, ...session.advertised }],
          clusterId: broker.clusterId,
          controllerId: NODE_ID,
          topics,
        };
      }),
    ),

    route(
      describeCluster,
      allow("caller", (request, { session }) => {
        // KIP-919: brokers (endpoint type 1) cannot describe controllers (2).
        const errorCode =
          request.endpointType === 1
            ? ERROR_CODES.none
            : request.endpointType === 2
              ? ERROR_CODES.mismatchedEndpointType
              : ERROR_CODES.unsupportedEndpointType;
        return {
          throttleTimeMs: 0,
          errorCode,
          errorMessage: errorCode === ERROR_CODES.none ? null : "Only brokers can be described.",
          clusterId: broker.clusterId,
          controllerId: NODE_ID,
          brokers: [{ brokerId: NODE_ID, ...session.advertised, rack: null }],
        };
      }),
    ),

    route(
      findCoordinator,
      allow("caller", (request, { session, version }) => {
        const isTransaction = request.keyType === TRANSACTION_KEY_TYPE;
        const refusal = isTransaction
          ? {
              errorCode: ERROR_CODES.transactionalIdAuthorizationFailed,
              errorMessage: "Transactions are not supported.",
            }
          : { errorCode: ERROR_CODES.invalidRequest, errorMessage: "The key type is unknown." };
        const place = { nodeId: NODE_ID, ...session.advertised };
        const answer =
          request.keyType === 0
            ? { errorCode: ERROR_CODES.none, errorMessage: null, ...place }
            : { ...refusal, nodeId: -1, host: "", port: -1 };
        if (version < 4) return answer;
        return { coordinators: request.coordinatorKeys.map((key) => ({ key, ...answer })) };
      }),
    ),
  ];
}

function listVisible({ topics }: KafkaBroker, { tenant, rights }: Principal): Topic[] {
  return [...topics.list(tenant)].filter(({ name }) => coversAny(rights, name));
}

async function findWanted(
  broker: KafkaBroker,
  principal: Principal,
  wanted: { name: string | null; topicId: string },
  mayCreate: boolean,
) {
  const { name, topicId } = wanted;
  if (name === null) {
    const found = findTopicById(broker.topics, principal, "any", topicId);
    return found === undefined
      ? describeMissing(null, ERROR_CODES.unknownTopicId, topicId)
      : describeTopic(found);
  }
  if (!mayUse(principal, "any", name))
    return describeMissing(name, ERROR_CODES.topicAuthorizationFailed);
  const found = findTopic(broker.topics, principal, "any", name);
  if (found !== undefined) return describeTopic(found);
  const own = readTopicName(name);
  if ("reason" in own) return describeMissing(name, ERROR_CODES.invalidTopic);
  if (!mayCreate) return describeMissing(name, ERROR_CODES.unknownTopicOrPartition);
  try {
    return describeTopic(await broker.topics.ensure(principal.tenant, own.name));
  } catch (error) {
    return describeMissing(name, toAnswer(error).errorCode);
  }
}

function describeMissing(name: string | null, errorCode: ErrorCode, topicId = UUID_ZERO) {
  return { errorCode, name, topicId, partitions: [] };
}

function describeTopic({ name, stored }: Topic) {
  return {
    errorCode: ERROR_CODES.none,
    name: toKafkaName(name),
    topicId: stored.id.toString("hex"),
    partitions: stored.partitions.map((partition) => ({
      errorCode: ERROR_CODES.none,
      partitionIndex: partition.index,
      leaderId: NODE_ID,
      leaderEpoch: leaderEpochOf(partition),
      replicaNodes: [NODE_ID],
      isrNodes: [NODE_ID],
    })),
  };
}
