// One generation of a group, as reported to its members.
import { toJoinedMember, type Member } from "./member.ts";
import type { Membership } from "./membership.ts";
import type { GroupDescription, GroupState, JoinResult, SyncRequest, SyncResult } from "./types.ts";

/** The agreed protocols; both are null before the first generation. */
export interface Generation {
  number: number;
  protocolType: string | null;
  protocol: string | null;
}

const NO_BYTES = Buffer.alloc(0);

/** Answer to a member's join: the leader gets the list of members. */
export function describeGeneration(
  generation: Generation,
  members: Membership,
  member: Member,
): JoinResult {
  const told = member.id === members.leader ? members.list() : [];
  return {
    error: undefined,
    memberId: member.id,
    generation: generation.number,
    protocolType: generation.protocolType,
    protocol: generation.protocol,
    leader: members.leader ?? "",
    skipAssignment: false,
    members: told.map((one) => toJoinedMember(one, generation.protocol ?? "")),
  };
}

/** True if the fields that a sync names match the generation. */
export function isOfGeneration(request: SyncRequest, generation: Generation): boolean {
  const { protocolType, protocol } = request;
  if (protocolType !== null && protocolType !== generation.protocolType) return false;
  return protocol === null || protocol === generation.protocol;
}

/** Answer to a member's sync. */
export function describeAssignment(generation: Generation, member: Member): SyncResult {
  const { protocolType, protocol } = generation;
  return { error: undefined, protocolType, protocol, assignment: member.assignment };
}

/** Description of the group; protocols are only included while they are valid. */
export function describeGroup(
  groupId: string,
  state: GroupState,
  generation: Generation,
  members: Membership,
): GroupDescription {
  const isStable = state === "Stable";
  const protocol = isStable ? (generation.protocol ?? "") : "";
  return {
    groupId,
    state,
    protocolType: generation.protocolType ?? "",
    protocol,
    members: members.list().map((member) => ({
      memberId: member.id,
      instanceId: member.instanceId,
      clientId: member.clientId,
      clientHost: member.clientHost,
      metadata: isStable ? toJoinedMember(member, protocol).metadata : NO_BYTES,
      assignment: isStable ? member.assignment : NO_BYTES,
    })),
  };
}
