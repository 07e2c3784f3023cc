// JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, ListGroups, DeleteGroups.
import { PlatformError } from "@platform/kernel/errors";
import type { GroupDescription } from "../../consumer-group/index.ts";
import type { Tenant } from "../../topic/name.ts";
import { toAnswer, toGroupAnswer } from "../answer.ts";
import type { KafkaBroker } from "../broker.ts";
import { ERROR_CODES, type ErrorCode } from "../protocol/error-codes.ts";
import {
  deleteGroups,
  describeGroups,
  heartbeat,
  joinGroup,
  leaveGroup,
  listGroups,
  syncGroup,
} from "../protocol/messages/index.ts";
import { allow, requireRight } from "../server/access.ts";
import { route, type Route } from "../server/route.ts";
import { principalOf } from "../server/session.ts";

/** First versions in which members need an id before they join, and leaders can skip an assignment. */
const MEMBER_ID_VERSION_MIN = 4;
const SKIP_ASSIGNMENT_VERSION_MIN = 9;
const GROUP_TYPE = "classic";

/** The coordinator's name for a tenant's group; tenants contain no colon. */
export function groupKey(tenant: Tenant, groupId: string): string {
  return `${tenant}:${groupId}`;
}

/** Creates the routes of consumer groups. */
export function createGroupRoutes(broker: KafkaBroker): Route[] {
  const { groups, offsets } = broker;
  return [
    route(
      joinGroup,
      requireRight(
        "subscribe",
        ({ memberId }) => refuseJoin(ERROR_CODES.groupAuthorizationFailed, memberId),
        async (request, { session, version, clientId }) => {
          const { tenant } = principalOf(session);
          const { groupId, groupInstanceId, memberId } = request;
          const claimError = await claimGroup(broker, tenant, groupId);
          if (claimError !== ERROR_CODES.none) return refuseJoin(claimError, memberId);
          const result = await groups.join(groupKey(tenant, groupId), {
            memberId,
            instanceId: groupInstanceId,
            clientId,
            clientHost: `/${session.remoteAddress}`,
            sessionTimeoutMs: request.sessionTimeoutMs,
            rebalanceTimeoutMs: request.rebalanceTimeoutMs,
            protocolType: request.protocolType,
            protocols: request.protocols,
            needsMemberId: version >= MEMBER_ID_VERSION_MIN,
            canSkipAssignment: version >= SKIP_ASSIGNMENT_VERSION_MIN,
          });
          if (result.error !== undefined) {
            return refuseJoin(toGroupAnswer(result.error), result.memberId);
          }
          return {
            errorCode: ERROR_CODES.none,
            generationId: result.generation,
            protocolType: result.protocolType,
            protocolName: result.protocol,
            leader: result.leader,
            skipAssignment: result.skipAssignment,
            memberId: result.memberId,
            members: result.members.map(({ instanceId, ...member }) => ({
              ...member,
              groupInstanceId: instanceId,
            })),
          };
        },
      ),
    ),

    route(
      syncGroup,
      requireRight(
        "subscribe",
        () => ({ errorCode: ERROR_CODES.groupAuthorizationFailed, assignment: Buffer.alloc(0) }),
        async (request, { session }) => {
          const { tenant } = principalOf(session);
          if (request.groupId === "") {
            return { errorCode: ERROR_CODES.invalidGroupId, assignment: Buffer.alloc(0) };
          }
          const result = await groups.sync(groupKey(tenant, request.groupId), {
            memberId: request.memberId,
            instanceId: request.groupInstanceId,
            generation: request.generationId,
            protocolType: request.protocolType,
            protocol: request.protocolName,
            assignments: request.assignments,
          });
          return {
            errorCode: toGroupAnswer(result.error),
            protocolType: result.protocolType,
            protocolName: result.protocol,
            assignment: result.assignment,
          };
        },
      ),
    ),

    route(
      heartbeat,
      requireRight(
        "subscribe",
        () => ({ errorCode: ERROR_CODES.groupAuthorizationFailed }),
        (request, { session }) => {
          const { tenant } = principalOf(session);
          if (request.groupId === "") return { errorCode: ERROR_CODES.invalidGroupId };
          const error = groups.heartbeat(groupKey(tenant, request.groupId), {
            memberId: request.memberId,
            instanceId: request.groupInstanceId,
            generation: request.generationId,
          });
          return { errorCode: toGroupAnswer(error) };
        },
      ),
    ),

    route(
      leaveGroup,
      requireRight(
        "subscribe",
        () => ({ errorCode: ERROR_CODES.groupAuthorizationFailed, members: [] }),
        (request, { session, version }) => {
          const { tenant } = principalOf(session);
          if (request.groupId === "") return { errorCode: ERROR_CODES.invalidGroupId };
          const key = groupKey(tenant, request.groupId);
          if (version < 3) {
            return { errorCode: toGroupAnswer(groups.leave(key, request.memberId, null)) };
          }
          const members = request.members.map(({ memberId, groupInstanceId }) => ({
            memberId,
            groupInstanceId,
            errorCode: toGroupAnswer(groups.leave(key, memberId, groupInstanceId)),
          }));
          return { errorCode: ERROR_CODES.none, members };
        },
      ),
    ),

    route(
      describeGroups,
      allow("caller", (request, { session }) => {
        const { tenant } = principalOf(session);
        return { groups: request.groups.map((groupId) => describeGroup(broker, tenant, groupId)) };
      }),
    ),

    route(
      listGroups,
      allow("caller", ({ statesFilter, typesFilter }, { session }) => {
        const { tenant } = principalOf(session);
        const isWanted = (filter: readonly string[], value: string) =>
          filter.length === 0 || filter.some((one) => one.toLowerCase() === value.toLowerCase());
        const listed = listAll(broker, tenant).filter(
          ({ groupState }) =>
            isWanted(statesFilter, groupState) && isWanted(typesFilter, GROUP_TYPE),
        );
        return { errorCode: ERROR_CODES.none, groups: listed };
      }),
    ),

    route(
      deleteGroups,
      requireRight(
        "manage",
        ({ groupsNames }) => ({
          throttleTimeMs: 0,
          results: groupsNames.map((groupId) => ({
            groupId,
            errorCode: ERROR_CODES.groupAuthorizationFailed,
          })),
        }),
        async ({ groupsNames }, { session }) => {
          const { tenant } = principalOf(session);
          const results = groupsNames.map(async (groupId) => {
            const isActive = groups.describe(groupKey(tenant, groupId)) !== undefined;
            if (groupId === "") return { groupId, errorCode: ERROR_CODES.invalidGroupId };
            if (isActive) return { groupId, errorCode: ERROR_CODES.nonEmptyGroup };
            if (!isKafkas(broker, tenant, groupId)) {
              return { groupId, errorCode: ERROR_CODES.groupIdNotFound };
            }
            try {
              await offsets.deleteGroup(tenant, groupId);
              return { groupId, errorCode: ERROR_CODES.none };
            } catch (error) {
              return { groupId, errorCode: toAnswer(error).errorCode };
            }
          });
          return { throttleTimeMs: 0, results: await Promise.all(results) };
        },
      ),
    ),
  ];
}

/** Claims a group for Kafka, durably, unless it is a shared subscription. */
export async function claimGroup(
  broker: KafkaBroker,
  tenant: Tenant,
  groupId: string,
): Promise<ErrorCode> {
  if (groupId === "") return ERROR_CODES.invalidGroupId;
  if (broker.offsets.kindOf(tenant, groupId) === "kafka") return ERROR_CODES.none;
  try {
    await broker.offsets.claim(tenant, groupId, "kafka");
    return ERROR_CODES.none;
  } catch (error) {
    if (!(error instanceof PlatformError)) return toAnswer(error).errorCode;
    if (error.code === "conflict") return ERROR_CODES.inconsistentGroupProtocol;
    return error.code === "validation_failed"
      ? ERROR_CODES.invalidGroupId
      : ERROR_CODES.coordinatorNotAvailable;
  }
}

function refuseJoin(errorCode: ErrorCode, memberId: string) {
  // The name may not be null before version 7.
  return { errorCode, generationId: -1, protocolName: "", leader: "", memberId, members: [] };
}

/** True if the group exists and is not a shared subscription. */
export function isKafkas(broker: KafkaBroker, tenant: Tenant, groupId: string): boolean {
  for (const { name, kind } of broker.offsets.groups(tenant)) {
    if (name === groupId) return kind !== "dispatch";
  }
  return false;
}

function describeGroup(broker: KafkaBroker, tenant: Tenant, groupId: string) {
  const active = broker.groups.describe(groupKey(tenant, groupId));
  if (active === undefined) {
    const isKnown = isKafkas(broker, tenant, groupId);
    return {
      errorCode: ERROR_CODES.none,
      groupId,
      groupState: isKnown ? "Empty" : "Dead",
      protocolType: isKnown ? "consumer" : "",
      protocolData: "",
      members: [],
    };
  }
  return {
    errorCode: ERROR_CODES.none,
    groupId,
    groupState: active.state,
    protocolType: active.protocolType,
    protocolData: active.protocol,
    members: active.members.map((member) => ({
      memberId: member.memberId,
      groupInstanceId: member.instanceId,
      clientId: member.clientId,
      clientHost: member.clientHost,
      memberMetadata: member.metadata,
      memberAssignment: member.assignment,
    })),
  };
}

/** Groups with members, and groups with committed offsets only. */
function listAll(broker: KafkaBroker, tenant: Tenant) {
  const prefix = groupKey(tenant, "");
  const active = new Map<string, GroupDescription>();
  for (const group of broker.groups.list()) {
    if (group.groupId.startsWith(prefix)) active.set(group.groupId.slice(prefix.length), group);
  }
  const listed = Array.from(active, ([groupId, { protocolType, state }]) => ({
    groupId,
    protocolType,
    groupState: state as string,
    groupType: GROUP_TYPE,
  }));
  for (const { name, kind } of broker.offsets.groups(tenant)) {
    if (kind === "dispatch" || active.has(name)) continue;
    listed.push({
      groupId: name,
      protocolType: "consumer",
      groupState: "Empty",
      groupType: GROUP_TYPE,
    });
  }
  return listed;
}
