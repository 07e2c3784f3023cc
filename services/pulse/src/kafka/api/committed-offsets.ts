// OffsetCommit, OffsetFetch, OffsetDelete.
import type { OffsetCommit } from "../../store/offsets.ts";
import { toKafkaName, type Tenant } from "../../topic/name.ts";
import type { Topic } from "../../topic/topics.ts";
import { toAnswer, toGroupAnswer } from "../answer.ts";
import { findTopic, mayUse, type KafkaBroker } from "../broker.ts";
import { ERROR_CODES, type ErrorCode } from "../protocol/error-codes.ts";
import { offsetCommit, offsetDelete, offsetFetch } from "../protocol/messages/index.ts";
import type { Read } from "../protocol/schema.ts";
import { requireRight } from "../server/access.ts";
import { route, type Route } from "../server/route.ts";
import { principalOf } from "../server/session.ts";
import type { Principal } from "../../user/principal.ts";
import { readSubscriptions } from "../subscription.ts";
import { claimGroup, groupKey, isKafkas } from "./groups.ts";

/** Kafka's `offset.metadata.max.bytes`. */
const METADATA_BYTES_MAX = 4096;

type CommitRequest = Read<typeof offsetCommit.request>;
type AskedTopics = readonly { name: string; partitionIndexes: readonly number[] }[] | null;

/** Creates the routes of committed offsets. */
export function createCommittedOffsetRoutes(broker: KafkaBroker): Route[] {
  return [
    route(
      offsetCommit,
      requireRight("subscribe", refuseCommit, async (request, { session }) => {
        const principal = principalOf(session);
        const { tenant } = principal;
        const general = await checkCommit(broker, tenant, request);
        return { topics: await commitAll(broker, principal, request, general) };
      }),
    ),

    route(
      offsetFetch,
      requireRight(
        "subscribe",
        refuseOffsets,
        ({ groupId, topics, groups }, { session, version }) => {
          const principal = principalOf(session);
          if (version < 8) return { topics: findCommitted(broker, principal, groupId, topics) };
          const answers = groups.map((group) => ({
            groupId: group.groupId,
            topics: findCommitted(broker, principal, group.groupId, group.topics),
            errorCode: ERROR_CODES.none,
          }));
          return { groups: answers };
        },
      ),
    ),

    route(
      offsetDelete,
      requireRight(
        "manage",
        () => ({ errorCode: ERROR_CODES.groupAuthorizationFailed, throttleTimeMs: 0, topics: [] }),
        async ({ groupId, topics }, { session }) => {
          const principal = principalOf(session);
          const { tenant } = principal;
          const active = broker.groups.describe(groupKey(tenant, groupId));
          const isSubscribed = active === undefined ? () => false : readSubscriptions(active);
          const isKnown = active !== undefined || isKafkas(broker, tenant, groupId);
          if (!isKnown || isSubscribed === undefined) {
            const errorCode = isKnown ? ERROR_CODES.nonEmptyGroup : ERROR_CODES.groupIdNotFound;
            return { errorCode, throttleTimeMs: 0, topics: [] };
          }
          return {
            errorCode: ERROR_CODES.none,
            throttleTimeMs: 0,
            topics: await deleteAll(broker, principal, groupId, topics, isSubscribed),
          };
        },
      ),
    ),
  ];
}

function refuseCommit({ topics }: CommitRequest) {
  return {
    topics: topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex }) => ({
        partitionIndex,
        errorCode: ERROR_CODES.groupAuthorizationFailed,
      })),
    })),
  };
}

function refuseOffsets({ groups }: Read<typeof offsetFetch.request>) {
  const errorCode = ERROR_CODES.groupAuthorizationFailed;
  return {
    errorCode,
    topics: [],
    groups: groups.map(({ groupId }) => ({ groupId, topics: [], errorCode })),
  };
}

async function checkCommit(
  broker: KafkaBroker,
  tenant: Tenant,
  request: CommitRequest,
): Promise<ErrorCode> {
  const error = broker.groups.checkCommit(groupKey(tenant, request.groupId), {
    memberId: request.memberId,
    instanceId: request.groupInstanceId,
    generation: request.generationId,
  });
  if (error !== undefined) return toGroupAnswer(error);
  return claimGroup(broker, tenant, request.groupId);
}

async function commitAll(
  broker: KafkaBroker,
  principal: Principal,
  request: CommitRequest,
  general: ErrorCode,
) {
  const commits: OffsetCommit[] = [];
  const places = request.topics.map(({ name, partitions }) => {
    const topic = findTopic(broker.topics, principal, "subscribe", name);
    return {
      name,
      partitions: partitions.map((partition) => {
        const { partitionIndex } = partition;
        const errorCode = general === 0 ? checkPlace(topic, partition) : general;
        if (errorCode === ERROR_CODES.none) {
          commits.push({
            topic: topic!,
            partition: partitionIndex,
            offset: partition.committedOffset,
            leaderEpoch: partition.committedLeaderEpoch,
            metadata: partition.committedMetadata ?? "",
          });
        }
        return { partitionIndex, errorCode };
      }),
    };
  });
  let outcome: ErrorCode = ERROR_CODES.none;
  try {
    if (commits.length > 0) await broker.offsets.commit(principal.tenant, request.groupId, commits);
  } catch (error) {
    outcome = toAnswer(error).errorCode;
  }
  if (outcome === ERROR_CODES.none) return places;
  return places.map(({ name, partitions }) => ({
    name,
    partitions: partitions.map(({ partitionIndex, errorCode }) => ({
      partitionIndex,
      errorCode: errorCode === ERROR_CODES.none ? outcome : errorCode,
    })),
  }));
}

function checkPlace(
  topic: Topic | undefined,
  partition: { partitionIndex: number; committedMetadata: string | null },
): ErrorCode {
  if (topic?.stored.partitions[partition.partitionIndex] === undefined) {
    return ERROR_CODES.unknownTopicOrPartition;
  }
  const isLong = Buffer.byteLength(partition.committedMetadata ?? "") > METADATA_BYTES_MAX;
  return isLong ? ERROR_CODES.offsetMetadataTooLarge : ERROR_CODES.none;
}

function findCommitted(
  broker: KafkaBroker,
  principal: Principal,
  groupId: string,
  asked: AskedTopics,
) {
  if (asked === null) return findAllCommitted(broker, principal, groupId);
  return asked.map(({ name, partitionIndexes }) => {
    const topic = findTopic(broker.topics, principal, "subscribe", name);
    const isAllowed = mayUse(principal, "subscribe", name);
    return {
      name,
      partitions: partitionIndexes.map((partitionIndex) => {
        // Without the error, a consumer would take the topic for one that it has not read yet.
        if (!isAllowed) return describeForbidden(partitionIndex);
        const found =
          topic === undefined
            ? undefined
            : broker.offsets.find(principal.tenant, groupId, topic, partitionIndex);
        return describeCommitted(partitionIndex, found);
      }),
    };
  });
}

function findAllCommitted(broker: KafkaBroker, principal: Principal, groupId: string) {
  const byTopic = new Map<string, ReturnType<typeof describeCommitted>[]>();
  for (const stored of broker.offsets.list(principal.tenant, groupId)) {
    if (!principal.rights.covers("subscribe", stored.topic.name)) continue;
    const name = toKafkaName(stored.topic.name);
    const partitions = byTopic.get(name) ?? [];
    byTopic.set(name, partitions);
    partitions.push(describeCommitted(stored.partition, stored));
  }
  return Array.from(byTopic, ([name, partitions]) => ({ name, partitions }));
}

function describeCommitted(
  partitionIndex: number,
  found: { offset: number; leaderEpoch: number; metadata: string } | undefined,
) {
  return {
    partitionIndex,
    committedOffset: found?.offset ?? -1,
    committedLeaderEpoch: found?.leaderEpoch ?? -1,
    metadata: found?.metadata ?? "",
    errorCode: ERROR_CODES.none as ErrorCode,
  };
}

function describeForbidden(partitionIndex: number) {
  const errorCode = ERROR_CODES.topicAuthorizationFailed;
  return { ...describeCommitted(partitionIndex, undefined), errorCode };
}

async function deleteAll(
  broker: KafkaBroker,
  principal: Principal,
  groupId: string,
  topics: Read<typeof offsetDelete.request>["topics"],
  isSubscribed: (topic: string) => boolean,
) {
  const deleted: { topic: Topic; partition: number }[] = [];
  const answers = topics.map(({ name, partitions }) => {
    const topic = findTopic(broker.topics, principal, "manage", name);
    return {
      name,
      partitions: partitions.map(({ partitionIndex }) => {
        if (topic?.stored.partitions[partitionIndex] === undefined) {
          return { partitionIndex, errorCode: ERROR_CODES.unknownTopicOrPartition };
        }
        if (isSubscribed(name)) {
          return { partitionIndex, errorCode: ERROR_CODES.groupSubscribedToTopic };
        }
        deleted.push({ topic, partition: partitionIndex });
        return { partitionIndex, errorCode: ERROR_CODES.none };
      }),
    };
  });
  await broker.offsets.deleteOffsets(principal.tenant, groupId, deleted);
  return answers;
}
