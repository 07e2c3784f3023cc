// DescribeGroups (key 15), versions 0–5: state and members of groups. Flexible from 5 on.
import {
  array,
  boolean,
  bytes,
  from,
  int16,
  int32,
  nullableString,
  string,
  struct,
} from "../schema.ts";
import { AUTHORIZED_OPERATIONS_UNKNOWN, defineMessage } from "../message.ts";

export const describeGroups = defineMessage({
  name: "DescribeGroups",
  key: 15,
  versions: [0, 5],
  flexibleFrom: 5,
  request: struct({
    groups: array(string),
    includeAuthorizedOperations: from(3, boolean, false),
  }),
  response: struct({
    throttleTimeMs: from(1, int32, 0),
    groups: array(
      struct({
        errorCode: int16,
        groupId: string,
        groupState: string,
        protocolType: string,
        protocolData: string,
        members: array(
          struct({
            memberId: string,
            groupInstanceId: from(4, nullableString, null),
            clientId: string,
            clientHost: string,
            memberMetadata: bytes,
            memberAssignment: bytes,
          }),
        ),
        authorizedOperations: from(3, int32, AUTHORIZED_OPERATIONS_UNKNOWN),
      }),
    ),
  }),
});
