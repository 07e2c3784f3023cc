// What members ask of a group and what they are told.

/** Why a group refuses a member; Kafka's error codes of the same meaning are given by the Kafka face. */
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

/** The states of a group; Kafka's names. */
export type GroupState = "Empty" | "PreparingRebalance" | "CompletingRebalance" | "Stable" | "Dead";

/** A way to assign that a member can do, with what it tells the leader about itself. */
export interface MemberProtocol {
  name: string;
  metadata: Buffer;
}

/** What a member says when it joins. */
export interface JoinRequest {
  /** Empty for a member that has no id yet. */
  memberId: string;
  /** The lasting name of a static member (KIP-345). */
  instanceId: string | null;
  clientId: string;
  clientHost: string;
  sessionTimeoutMs: number;
  /** How long the group waits for this member to rejoin, and then to sync. */
  rebalanceTimeoutMs: number;
  protocolType: string;
  /** Best first. */
  protocols: readonly MemberProtocol[];
  /** The member is sent away with an id first, so that it can be forgotten when it vanishes (KIP-394). */
  needsMemberId: boolean;
  /** A returning static leader can be told to skip the assignment (KIP-814). */
  canSkipAssignment: boolean;
}

/** A member as the leader sees it. */
export interface JoinedMember {
  memberId: string;
  instanceId: string | null;
  metadata: Buffer;
}

/** The answer to a join. With an error, only `memberId` means something. */
export interface JoinResult {
  error: GroupError | undefined;
  memberId: string;
  generation: number;
  protocolType: string | null;
  protocol: string | null;
  leader: string;
  skipAssignment: boolean;
  /** All members for the leader, nothing for the others. */
  members: readonly JoinedMember[];
}

/** What a member says when it asks for its assignment; the leader brings those of all. */
export interface SyncRequest {
  memberId: string;
  instanceId: string | null;
  generation: number;
  /** Null from clients that do not tell. */
  protocolType: string | null;
  protocol: string | null;
  assignments: readonly { memberId: string; assignment: Buffer }[];
}

/** The answer to a sync. */
export interface SyncResult {
  error: GroupError | undefined;
  protocolType: string | null;
  protocol: string | null;
  assignment: Buffer;
}

/** Which member speaks, and of which generation. */
export interface MemberClaim {
  memberId: string;
  instanceId: string | null;
  generation: number;
}

/** A member for those who look at a group. */
export interface MemberDescription {
  memberId: string;
  instanceId: string | null;
  clientId: string;
  clientHost: string;
  metadata: Buffer;
  assignment: Buffer;
}

/** A group for those who look at it. */
export interface GroupDescription {
  groupId: string;
  state: GroupState;
  protocolType: string;
  /** Empty unless the group is stable. */
  protocol: string;
  members: readonly MemberDescription[];
}

/** Bounds and times of all groups; times in milliseconds. */
export interface GroupLimits {
  /** Groups with members at once. Default 10 000. */
  groupsMax: number;
  /** Members of one group, those with an id that have not joined yet included. Default 1 000. */
  membersMax: number;
  /** Names and metadata of all protocols of one member, in bytes. Default 256 KiB. */
  metadataBytesMax: number;
  /** One member's assignment, in bytes. Default 1 MiB. */
  assignmentBytesMax: number;
  /** Shortest and longest session timeout. Defaults 6 s and 30 min, as Kafka's. */
  sessionTimeoutMsMin: number;
  sessionTimeoutMsMax: number;
  /** Shortest and longest rebalance timeout; other wishes are moved there. Defaults 1 s, 30 min. */
  rebalanceTimeoutMsMin: number;
  rebalanceTimeoutMsMax: number;
  /** How long the first generation of a group waits for more members after each join. Default 150. */
  initialDelayMs: number;
}

/** The limits where nothing else is configured. */
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

/** Time as groups need it. */
export interface GroupTime {
  /** Milliseconds that never run backwards. */
  monotonicMs(): number;
  /** Calls `run` once, `ms` from now; the returned function prevents that. */
  after(ms: number, run: () => void): () => void;
}

/** The machine's time. A waiting timer does not keep the process alive. */
export const systemGroupTime: GroupTime = {
  monotonicMs: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
