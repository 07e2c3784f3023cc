// A member of a consumer group, and the choice of a protocol supported by all members.
import type {
  GroupError,
  JoinRequest,
  JoinResult,
  JoinedMember,
  MemberProtocol,
  SyncResult,
} from "./types.ts";

/** A member of a consumer group. `join` and `sync` are set while a request is pending. */
export interface Member {
  readonly id: string;
  readonly instanceId: string | null;
  clientId: string;
  clientHost: string;
  sessionTimeoutMs: number;
  rebalanceTimeoutMs: number;
  protocols: readonly MemberProtocol[];
  assignment: Buffer;
  /**
   * Monotonic time at which the member is removed if no heartbeat or other request of it has arrived; not while one of
   * its requests is pending.
   */
  sessionEndMs: number;
  join: ((result: JoinResult) => void) | undefined;
  sync: ((result: SyncResult) => void) | undefined;
}

const NO_BYTES = Buffer.alloc(0);

/** Creates a member from its first join. */
export function createMember(id: string, request: JoinRequest): Member {
  const member: Member = {
    id,
    instanceId: request.instanceId,
    clientId: "",
    clientHost: "",
    sessionTimeoutMs: 0,
    rebalanceTimeoutMs: 0,
    protocols: [],
    assignment: NO_BYTES,
    sessionEndMs: Infinity,
    join: undefined,
    sync: undefined,
  };
  updateMember(member, request);
  return member;
}

/** Applies the fields of a repeated join. */
export function updateMember(member: Member, request: JoinRequest): void {
  member.clientId = request.clientId;
  member.clientHost = request.clientHost;
  member.sessionTimeoutMs = request.sessionTimeoutMs;
  member.rebalanceTimeoutMs = request.rebalanceTimeoutMs;
  member.protocols = request.protocols;
}

/** True if the member's protocols are unchanged. */
export function hasSameProtocols(member: Member, protocols: readonly MemberProtocol[]): boolean {
  return (
    member.protocols.length === protocols.length &&
    member.protocols.every(
      (protocol, index) =>
        protocol.name === protocols[index]!.name &&
        protocol.metadata.equals(protocols[index]!.metadata),
    )
  );
}

/** Returns the member's entry in the leader's list, with its metadata for the chosen protocol. */
export function toJoinedMember(member: Member, protocol: string): JoinedMember {
  const metadata = member.protocols.find(({ name }) => name === protocol)?.metadata ?? NO_BYTES;
  return { memberId: member.id, instanceId: member.instanceId, metadata };
}

/** Returns the protocols that all members support, in the first member's order. */
export function findCommonProtocols(members: readonly Member[]): string[] {
  const [first, ...others] = members;
  if (first === undefined) return [];
  const known = others.map(({ protocols }) => new Set(protocols.map(({ name }) => name)));
  return first.protocols
    .map(({ name }) => name)
    .filter((name) => known.every((set) => set.has(name)));
}

/** Returns the common protocol that most members prefer. At least one must exist. */
export function chooseProtocol(members: readonly Member[]): string {
  const common = new Set(findCommonProtocols(members));
  const votes = new Map<string, number>();
  for (const { protocols } of members) {
    const vote = protocols.find(({ name }) => common.has(name))!.name;
    votes.set(vote, (votes.get(vote) ?? 0) + 1);
  }
  return [...votes].reduce((best, vote) => (vote[1] > best[1] ? vote : best))[0];
}

/** Builds the result of a rejected join. */
export function refuseJoin(error: GroupError, memberId: string): JoinResult {
  return {
    error,
    memberId,
    generation: -1,
    protocolType: null,
    protocol: null,
    leader: "",
    skipAssignment: false,
    members: [],
  };
}

/** Builds the result of a rejected sync. */
export function refuseSync(error: GroupError): SyncResult {
  return { error, protocolType: null, protocol: null, assignment: NO_BYTES };
}
