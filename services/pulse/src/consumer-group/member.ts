// One member of a group, and the choice of a protocol that all members can do.
import type {
  GroupError,
  JoinRequest,
  JoinResult,
  JoinedMember,
  MemberProtocol,
  SyncResult,
} from "./types.ts";

/** A member. `join` and `sync` are set while it waits for an answer. */
export interface Member {
  readonly id: string;
  readonly instanceId: string | null;
  clientId: string;
  clientHost: string;
  sessionTimeoutMs: number;
  rebalanceTimeoutMs: number;
  protocols: readonly MemberProtocol[];
  assignment: Buffer;
  /** It is gone when nothing was heard of it until then (monotonic), unless it waits for an answer. */
  sessionEndMs: number;
  join: ((result: JoinResult) => void) | undefined;
  sync: ((result: SyncResult) => void) | undefined;
}

const NO_BYTES = Buffer.alloc(0);

/** A member that has just come. */
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

/** Takes over what a member says about itself when it joins (again). */
export function updateMember(member: Member, request: JoinRequest): void {
  member.clientId = request.clientId;
  member.clientHost = request.clientHost;
  member.sessionTimeoutMs = request.sessionTimeoutMs;
  member.rebalanceTimeoutMs = request.rebalanceTimeoutMs;
  member.protocols = request.protocols;
}

/** Whether the member said the same of itself before. */
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

/** What the leader is told of a member under the chosen protocol. */
export function toJoinedMember(member: Member, protocol: string): JoinedMember {
  const metadata = member.protocols.find(({ name }) => name === protocol)?.metadata ?? NO_BYTES;
  return { memberId: member.id, instanceId: member.instanceId, metadata };
}

/** Protocols that every member can do, in the first member's order. */
export function findCommonProtocols(members: readonly Member[]): string[] {
  const [first, ...others] = members;
  if (first === undefined) return [];
  const known = others.map(({ protocols }) => new Set(protocols.map(({ name }) => name)));
  return first.protocols
    .map(({ name }) => name)
    .filter((name) => known.every((set) => set.has(name)));
}

/** The common protocol that most members like best. There must be a common one. */
export function chooseProtocol(members: readonly Member[]): string {
  const common = new Set(findCommonProtocols(members));
  const votes = new Map<string, number>();
  for (const { protocols } of members) {
    const vote = protocols.find(({ name }) => common.has(name))!.name;
    votes.set(vote, (votes.get(vote) ?? 0) + 1);
  }
  return [...votes].reduce((best, vote) => (vote[1] > best[1] ? vote : best))[0];
}

/** A join that is refused. */
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

/** A sync that is refused. */
export function refuseSync(error: GroupError): SyncResult {
  return { error, protocolType: null, protocol: null, assignment: NO_BYTES };
}
