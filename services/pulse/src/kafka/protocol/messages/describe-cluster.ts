// DescribeCluster (key 60), versions 0–1: brokers and cluster id (KIP-700). Always flexible.
import {
  array,
  boolean,
  from,
  int16,
  int32,
  int8,
  nullableString,
  string,
  struct,
} from "../schema.ts";
import { AUTHORIZED_OPERATIONS_UNKNOWN, defineMessage } from "../message.ts";

export const describeCluster = defineMessage({
  name: "DescribeCluster",
  key: 60,
  versions: [0, 1],
  flexibleFrom: 0,
  request: struct({
    includeClusterAuthorizedOperations: boolean,
    endpointType: from(1, int8, 1),
  }),
  response: struct({
    throttleTimeMs: int32,
    errorCode: int16,
    errorMessage: nullableString,
    endpointType: from(1, int8, 1),
    clusterId: string,
    controllerId: int32,
    brokers: array(struct({ brokerId: int32, host: string, port: int32, rack: nullableString })),
    clusterAuthorizedOperations: from(0, int32, AUTHORIZED_OPERATIONS_UNKNOWN),
  }),
});
