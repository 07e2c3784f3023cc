// Metadata (key 3), versions 0–12: brokers and topics. Flexible from 9 on.
import {
  array,
  between,
  boolean,
  from,
  int16,
  int32,
  nullableArray,
  nullableString,
  string,
  struct,
  uuid,
  UUID_ZERO,
} from "../schema.ts";
import { AUTHORIZED_OPERATIONS_UNKNOWN, defineMessage } from "../message.ts";

/** Metadata. All topics are requested by an empty list in version 0, by null in later ones. */
export const metadata = defineMessage({
  name: "Metadata",
  key: 3,
  versions: [0, 12],
  flexibleFrom: 9,
  request: struct({
    topics: nullableArray(struct({ topicId: from(10, uuid, UUID_ZERO), name: nullableString })),
    allowAutoTopicCreation: from(4, boolean, true),
    includeClusterAuthorizedOperations: between(8, 10, boolean, false),
    includeTopicAuthorizedOperations: from(8, boolean, false),
  }),
  response: struct({
    throttleTimeMs: from(3, int32, 0),
    brokers: array(
      struct({ nodeId: int32, host: string, port: int32, rack: from(1, nullableString, null) }),
    ),
    clusterId: from(2, nullableString, null),
    controllerId: from(1, int32, -1),
    topics: array(
      struct({
        errorCode: int16,
        name: nullableString,
        topicId: from(10, uuid, UUID_ZERO),
        isInternal: from(1, boolean, false),
        partitions: array(
          struct({
            errorCode: int16,
            partitionIndex: int32,
            leaderId: int32,
            leaderEpoch: from(7, int32, -1),
            replicaNodes: array(int32),
            isrNodes: array(int32),
            offlineReplicas: from(5, array(int32), []),
          }),
        ),
        topicAuthorizedOperations: from(8, int32, AUTHORIZED_OPERATIONS_UNKNOWN),
      }),
    ),
    clusterAuthorizedOperations: between(8, 10, int32, AUTHORIZED_OPERATIONS_UNKNOWN),
  }),
});
