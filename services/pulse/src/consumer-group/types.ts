// Requests of group members and the answers to them.

/** Errors of a group; the Kafka server maps them to Kafka's error codes. */
export type GroupError =
  | "coordinator-overloaded"
  | "fenced-instance-id"
  | "group-max-size-reached"
  | "illegal-generation"
  | "inconsistent-group-protocol"
  | "invalid-session-timeout"
  | "member-id-required"
  | "metadata-too-large"
  | "rebalance-in-progress"
  | "unknown-member-id";

/** The states of a group, with Kafka's names. */
export const GROUP_STATES = [
  "Empty",
  "PreparingRebalance",
  "CompletingRebalance",
  "Stable",
  "Dead",
] as const;

/** The state of a group. */
export type GroupState = (typeof GROUP_STATES)[number];

/** An assignment protocol that a member supports, with its metadata for the leader. */
export interface MemberProtocol {
  name: string;
  metadata: Buffer;
}

/** A join request. */
export interface JoinRequest {
  /** Empty for a member without an id. */
  memberId: string;
  /** The instance id of a static member (KIP-345). */
  instanceId: string | null;
  clientId: string;
  clientHost: string;
  sessionTimeoutMs: number;
  /** Time limit for this member to rejoin, and then to sync. */
  rebalanceTimeoutMs: number;
  protocolType: string;
  /** In order of preference. */
  protocols: readonly MemberProtocol[];
  /** The member must join again with the id it is given, so that it can be dropped if it disappears (KIP-394). */
  needsMemberId: boolean;
  /** A returning static leader may be told to skip the assignment (KIP-814). */
  canSkipAssignment: boolean;
}

/** A member in the leader's list. */
export interface JoinedMember {
  memberId: string;
  instanceId: string | null;
  metadata: Buffer;
}

/** Answer to a join. With an error, only `memberId` is valid. */
export interface JoinResult {
  error: GroupError | undefined;
  memberId: string;
  generation: number;
  protocolType: string | null;
  protocol: string | null;
  leader: string;
  skipAssignment: boolean;
  /** All members for the leader, empty for the others. */
  members: readonly JoinedMember[];
}

/** A sync request; the leader's contains all assignments. */
export interface SyncRequest {
  memberId: string;
  instanceId: string | null;
  generation: number;
  /** Null if the client did not send it. */
  protocolType: string | null;
  protocol: string | null;
  assignments: readonly { memberId: string; assignment: Buffer }[];
}

/** Answer to a sync. */
export interface SyncResult {
  error: GroupError | undefined;
  protocolType: string | null;
  protocol: string | null;
  assignment: Buffer;
}

/** Identifies a member and its generation. */
export interface MemberClaim {
  memberId: string;
  instanceId: string | null;
  generation: number;
}

/** Description of a member. */
interface MemberDescription {
  memberId: string;
  instanceId: string | null;
  clientId: string;
  clientHost: string;
  metadata: Buffer;
  assignment: Buffer;
}

/** Description of a group. */
export interface GroupDescription {
  groupId: string;
  state: GroupState;
  protocolType: string;
  /** Empty unless the group is stable. */
  protocol: string;
  members: readonly MemberDescription[];
}

/** Limits and times of all groups; times in milliseconds. */
export interface GroupLimits {
  /** Maximum number of groups with members. Default 10 000. */
  groupsMax: number;
  /** Maximum number of members of a group, including assigned ids. Default 1 000. */
  membersMax: number;
  /** Maximum bytes of names and metadata of all protocols of one member. Default 256 KiB. */
  metadataBytesMax: number;
  /** Maximum bytes of one member's assignment. Default 1 MiB. */
  assignmentBytesMax: number;
  /** Shortest and longest session timeout. Defaults 6 s and 30 min, as in Kafka. */
  sessionTimeoutMsMin: number;
  sessionTimeoutMsMax: number;
  /** Shortest and longest rebalance timeout; other values are clamped. Defaults 1 s, 30 min. */
  rebalanceTimeoutMsMin: number;
  rebalanceTimeoutMsMax: number;
  /** Wait of a group's first generation for more members after each join. Default 150. */
  initialDelayMs: number;
}

export const GROUP_LIMITS_DEFAULT: GroupLimits = {
  groupsMax: 10_000,
  membersMax: 1_000,
  metadataBytesMax: 256 * 1024,
  assignmentBytesMax: 1024 * 1024,
  sessionTimeoutMsMin: 6_000,
  sessionTimeoutMsMax: 30 * 60_000,
  rebalanceTimeoutMsMin: 1_000,
  rebalanceTimeoutMsMax: 30 * 60_000,
  initialDelayMs: 150,
};

/** Clock and timers of groups. */
export interface GroupTime {
  /** Monotonic milliseconds. */
  monotonicMs(): number;
  /** Calls `run` once after `ms`; the returned function cancels the call. */
  after(ms: number, run: () => void): () => void;
}

/** The system clock. A waiting timer does not keep the process alive. */
export const systemGroupTime: GroupTime = {
  monotonicMs: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
