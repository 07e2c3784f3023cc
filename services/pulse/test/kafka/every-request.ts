// A request for each API key, to topics of names that a test creates.
import { encodeBatch } from "@platform/log/batch";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import {
  alterConfigs,
  apiVersions,
  createAcls,
  createPartitions,
  createTopics,
  deleteAcls,
  deleteGroups,
  deleteRecords,
  deleteTopics,
  describeAcls,
  describeCluster,
  describeConfigs,
  describeGroups,
  fetch,
  findCoordinator,
  heartbeat,
  incrementalAlterConfigs,
  initProducerId,
  joinGroup,
  leaveGroup,
  listGroups,
  listOffsets,
  metadata,
  offsetCommit,
  offsetDelete,
  offsetFetch,
  offsetForLeaderEpoch,
  produce,
  saslAuthenticate,
  saslHandshake,
  syncGroup,
} from "../../src/kafka/protocol/messages/index.ts";
import type { WireMessage } from "../../src/kafka/protocol/message.ts";
import { versionsBody } from "./requests.ts";

/** A message of any type. */
// oxlint-disable-next-line typescript/no-explicit-any -- a table of different messages
export type AnyMessage = WireMessage<any, any, any, any>;

/** A request. */
export interface KafkaRequest {
  message: AnyMessage;
  version: number;
  body: object;
  /** The error for clients that lack the right for all topics. */
  refusal?: number;
}

/** Names in the requests. `lostTopic` and the offset of `lostGroup` are deleted by those with the right. */
export interface RequestedNames {
  topic: string;
  /** The id of `topic`, in hexadecimal. */
  topicId: string;
  lostTopic: string;
  group: string;
  lostGroup: string;
}

const {
  topicAuthorizationFailed: TOPIC,
  groupAuthorizationFailed: GROUP,
  clusterAuthorizationFailed: CLUSTER,
} = ERROR_CODES;

/** Requests for all API keys. Other than by Produce and by deletions, nothing changes that a further request would notice. */
export function createRequests(names: RequestedNames): KafkaRequest[] {
  return [
    { message: apiVersions, version: 3, body: versionsBody },
    { message: saslHandshake, version: 1, body: { mechanism: "PLAIN" } },
    { message: saslAuthenticate, version: 2, body: { authBytes: Buffer.from("\0nobody\0") } },
    { message: describeCluster, version: 0, body: { includeClusterAuthorizedOperations: false } },
    { message: findCoordinator, version: 4, body: { keyType: 0, coordinatorKeys: [names.group] } },
    ...createTopicRequests(names),
    ...createGroupRequests(names),
    ...createAclRequests(),
  ];
}

function createTopicRequests({ topic: name, topicId, lostTopic }: RequestedNames): KafkaRequest[] {
  const ask = (partition: object) => ({ topics: [{ name, partitions: [partition] }] });
  const record = { key: null, value: Buffer.from("x"), headers: [], timestamp: 1 };
  const fetched = { partition: 0, fetchOffset: 0, partitionMaxBytes: 1_000 };
  const fetchBody = { maxWaitMs: 0, minBytes: 0, maxBytes: 1_000, isolationLevel: 0 };
  const resources = [{ resourceType: 2, resourceName: name, configs: [] }];
  const placed = { replicationFactor: 1, assignments: [], configs: [] };
  const timed = { timeoutMs: 1_000, validateOnly: true };
  const createBody = { topics: [{ name: `${name}.new`, numPartitions: 1, ...placed }], ...timed };
  const growBody = { topics: [{ name, count: 2, assignments: null }], ...timed };
  const records = [encodeBatch([record])];
  return [
    {
      message: metadata,
      version: 12,
      body: { topics: [{ name }], allowAutoTopicCreation: false },
    },
    { message: metadata, version: 12, body: { topics: [{ name: null, topicId }] } },
    {
      message: produce,
      version: 9,
      body: { acks: -1, timeoutMs: 1_000, ...ask({ index: 0, records }) },
      refusal: TOPIC,
    },
    {
      message: initProducerId,
      version: 4,
      body: { transactionalId: null, transactionTimeoutMs: 1 },
      refusal: CLUSTER,
    },
    { message: fetch, version: 11, body: { ...fetchBody, ...ask(fetched) }, refusal: TOPIC },
    {
      message: fetch,
      version: 13,
      body: { ...fetchBody, topics: [{ topicId, partitions: [fetched] }] },
      refusal: TOPIC,
    },
    {
      message: listOffsets,
      version: 6,
      body: { replicaId: -1, ...ask({ partitionIndex: 0, timestamp: -1 }) },
      refusal: TOPIC,
    },
    {
      message: offsetForLeaderEpoch,
      version: 3,
      body: ask({ partition: 0, leaderEpoch: 0 }),
      refusal: TOPIC,
    },
    {
      message: deleteRecords,
      version: 2,
      body: { ...ask({ partitionIndex: 0, offset: 0 }), timeoutMs: 1_000 },
      refusal: TOPIC,
    },
    { message: createTopics, version: 5, body: createBody, refusal: TOPIC },
    {
      message: deleteTopics,
      version: 5,
      body: { topicNames: [lostTopic], timeoutMs: 1_000 },
      refusal: TOPIC,
    },
    { message: createPartitions, version: 3, body: growBody, refusal: TOPIC },
    {
      message: describeConfigs,
      version: 4,
      body: {
        resources: [{ resourceType: 2, resourceName: name, configurationKeys: null }],
        includeSynonyms: false,
      },
    },
    { message: alterConfigs, version: 2, body: { resources, validateOnly: true }, refusal: TOPIC },
    {
      message: incrementalAlterConfigs,
      version: 1,
      body: { resources, validateOnly: true },
      refusal: TOPIC,
    },
  ];
}

function createGroupRequests({ topic: name, group, lostGroup }: RequestedNames): KafkaRequest[] {
  const member = { groupId: `${group}.members`, generationId: 1, memberId: "m" };
  const joinBody = {
    groupId: member.groupId,
    sessionTimeoutMs: 10_000,
    rebalanceTimeoutMs: 1_000,
    memberId: "",
    protocolType: "consumer",
    protocols: [{ name: "range", metadata: Buffer.alloc(0) }],
  };
  const partition = { partitionIndex: 0, committedOffset: 5, committedMetadata: "" };
  const commitBody = {
    groupId: group,
    generationId: -1,
    memberId: "",
    topics: [{ name, partitions: [partition] }],
  };
  const asked = [{ name, partitionIndexes: [0] }];
  const deleted = [{ name, partitions: [{ partitionIndex: 0 }] }];
  return [
    { message: joinGroup, version: 5, body: joinBody, refusal: GROUP },
    { message: syncGroup, version: 3, body: { ...member, assignments: [] }, refusal: GROUP },
    { message: heartbeat, version: 3, body: member, refusal: GROUP },
    {
      message: leaveGroup,
      version: 2,
      body: { groupId: member.groupId, memberId: "m" },
      refusal: GROUP,
    },
    { message: describeGroups, version: 4, body: { groups: [group] } },
    { message: listGroups, version: 4, body: {} },
    { message: offsetCommit, version: 7, body: commitBody, refusal: GROUP },
    { message: offsetFetch, version: 7, body: { groupId: group, topics: asked }, refusal: GROUP },
    {
      message: offsetFetch,
      version: 8,
      body: { groups: [{ groupId: group, topics: asked }] },
      refusal: GROUP,
    },
    {
      message: offsetDelete,
      version: 0,
      body: { groupId: lostGroup, topics: deleted },
      refusal: GROUP,
    },
    {
      message: deleteGroups,
      version: 2,
      body: { groupsNames: [`${group}.missing`] },
      refusal: GROUP,
    },
  ];
}

function createAclRequests(): KafkaRequest[] {
  // An exact topic that no rule names, and a role.
  const resource = { resourceType: 2, resourceName: "none", patternType: 3 };
  const grant = { principal: "User:none", host: "*", operation: 3, permissionType: 3 };
  const acl = { ...resource, ...grant };
  return [
    { message: describeAcls, version: 3, body: acl, refusal: CLUSTER },
    { message: createAcls, version: 3, body: { creations: [acl] }, refusal: CLUSTER },
    { message: deleteAcls, version: 3, body: { filters: [acl] }, refusal: CLUSTER },
  ];
}
