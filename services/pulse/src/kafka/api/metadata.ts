// Metadata, DescribeCluster, FindCoordinator: where everything is. There is one broker: this one.
import { toAnswer } from "../answer.ts";
import { findTopic, leaderEpochOf, nodeId, readTopicName, type KafkaBroker } from "../broker.ts";
import { errorCodes, type ErrorCode } from "../protocol/error-codes.ts";
import { describeCluster, findCoordinator, metadata } from "../protocol/messages/index.ts";
import { uuidZero } from "../protocol/schema.ts";
import { route, type Route } from "../server/route.ts";
import { principalOf } from "../server/session.ts";
import { toKafkaName, type Tenant } from "../../topic/name.ts";
import type { Topic } from "../../topic/topics.ts";

const transactionKeyType = 1;

/** The routes that tell clients where to go. */
export function metadataRoutes(broker: KafkaBroker): Route[] {
  return [
    route(metadata, async (request, { session, version }) => {
      const { tenant } = principalOf(session);
      const wanted = request.topics;
      const isAll = wanted === null || (version === 0 && wanted.length === 0);
      const mayCreate = broker.isAutoCreating && request.allowAutoTopicCreation;
      const topics = isAll
        ? Array.from(broker.topics.list(tenant), describeTopic)
        : await Promise.all(wanted.map((topic) => findWanted(broker, tenant, topic, mayCreate)));
      return {
        brokers: [{ nodeId, ...session.advertised }],
        clusterId: broker.clusterId,
        controllerId: nodeId,
        topics,
      };
    }),

    route(describeCluster, (request, { session }) => {
      // KIP-919: brokers (endpoint type 1) cannot tell of controllers (2).
      const errorCode =
        request.endpointType === 1
          ? errorCodes.none
          : request.endpointType === 2
            ? errorCodes.mismatchedEndpointType
            : errorCodes.unsupportedEndpointType;
      return {
        throttleTimeMs: 0,
        errorCode,
        errorMessage: errorCode === errorCodes.none ? null : "Only brokers are described.",
        clusterId: broker.clusterId,
        controllerId: nodeId,
        brokers: [{ brokerId: nodeId, ...session.advertised, rack: null }],
      };
    }),

    route(findCoordinator, (request, { session, version }) => {
      const isTransaction = request.keyType === transactionKeyType;
      const refusal = isTransaction
        ? {
            errorCode: errorCodes.transactionalIdAuthorizationFailed,
            errorMessage: "Transactions are not available.",
          }
        : { errorCode: errorCodes.invalidRequest, errorMessage: "There is no such key type." };
      const place = { nodeId, ...session.advertised };
      const answer =
        request.keyType === 0
          ? { errorCode: errorCodes.none, errorMessage: null, ...place }
          : { ...refusal, nodeId: -1, host: "", port: -1 };
      if (version < 4) return answer;
      return { coordinators: request.coordinatorKeys.map((key) => ({ key, ...answer })) };
    }),
  ];
}

async function findWanted(
  broker: KafkaBroker,
  tenant: Tenant,
  wanted: { name: string | null; topicId: string },
  mayCreate: boolean,
) {
  const { name, topicId } = wanted;
  if (name === null) {
    const found = broker.topics.findById(tenant, Buffer.from(topicId, "hex"));
    return found === undefined
      ? describeMissing(null, errorCodes.unknownTopicId, topicId)
      : describeTopic(found);
  }
  const found = findTopic(broker.topics, tenant, name);
  if (found !== undefined) return describeTopic(found);
  const own = readTopicName(name);
  if ("reason" in own) return describeMissing(name, errorCodes.invalidTopic);
  if (!mayCreate) return describeMissing(name, errorCodes.unknownTopicOrPartition);
  try {
    return describeTopic(await broker.topics.ensure(tenant, own.name));
  } catch (error) {
    return describeMissing(name, toAnswer(error).errorCode);
  }
}

function describeMissing(name: string | null, errorCode: ErrorCode, topicId = uuidZero) {
  return { errorCode, name, topicId, partitions: [] };
}

function describeTopic({ name, stored }: Topic) {
  return {
    errorCode: errorCodes.none,
    name: toKafkaName(name),
    topicId: stored.id.toString("hex"),
    partitions: stored.partitions.map((partition) => ({
      errorCode: errorCodes.none,
      partitionIndex: partition.index,
      leaderId: nodeId,
      leaderEpoch: leaderEpochOf(partition),
      replicaNodes: [nodeId],
      isrNodes: [nodeId],
    })),
  };
}
