// All consumer groups of the classic protocol, created when their first member joins.
import { randomUUID } from "node:crypto";
import { ConsumerGroup } from "./consumer-group.ts";
import { refuseJoin, refuseSync } from "./member.ts";
import {
  GROUP_LIMITS_DEFAULT,
  systemGroupTime,
  type GroupDescription,
  type GroupError,
  type GroupLimits,
  type GroupTime,
  type JoinRequest,
  type JoinResult,
  type MemberClaim,
  type SyncRequest,
  type SyncResult,
} from "./types.ts";

const MEMBER_ID_PREFIX_CHARS_MAX = 64;

/** Options of a `GroupCoordinator`. */
export interface CoordinatorOptions {
  limits?: Partial<GroupLimits>;
  time?: GroupTime;
  /** Creates the random part of a member id. */
  createId?: () => string;
  /** Called when the last member of a group has left. */
  onEmpty?: (groupId: string) => void;
}

/**
 * Consumer groups in memory. After a restart members are unknown and join again; committed offsets are stored elsewhere.
 * A group is dropped when its last member has left.
 */
export class GroupCoordinator {
  readonly limits: GroupLimits;
  readonly #time: GroupTime;
  readonly #createId: () => string;
  readonly #onEmpty: (groupId: string) => void;
  readonly #groups = new Map<string, ConsumerGroup>();

  constructor(options: CoordinatorOptions = {}) {
    this.limits = { ...GROUP_LIMITS_DEFAULT, ...options.limits };
    this.#time = options.time ?? systemGroupTime;
    this.#createId = options.createId ?? randomUUID;
    this.#onEmpty = options.onEmpty ?? (() => undefined);
  }

  /** Number of groups with members. */
  get groupCount(): number {
    return this.#groups.size;
  }

  /** Number of members of all groups. */
  countMembers(): number {
    let count = 0;
    for (const group of this.#groups.values()) count += group.memberCount;
    return count;
  }

  /** Joins a group; answered when its next generation begins. */
  async join(groupId: string, request: JoinRequest): Promise<JoinResult> {
    const error = this.#checkBounds(request);
    if (error !== undefined) return refuseJoin(error, request.memberId);
    let group = this.#groups.get(groupId);
    if (group === undefined) {
      if (request.memberId !== "") return refuseJoin("unknown-member-id", request.memberId);
      if (this.#groups.size >= this.limits.groupsMax) {
        return refuseJoin("coordinator-overloaded", request.memberId);
      }
      group = this.#create(groupId);
    }
    const { rebalanceTimeoutMsMin, rebalanceTimeoutMsMax } = this.limits;
    // Clients before version 1 have one timeout for both.
    const wished =
      request.rebalanceTimeoutMs < 0 ? request.sessionTimeoutMs : request.rebalanceTimeoutMs;
    const rebalanceTimeoutMs = Math.min(
      Math.max(wished, rebalanceTimeoutMsMin),
      rebalanceTimeoutMsMax,
    );
    return group.join({ ...request, rebalanceTimeoutMs });
  }

  /** Requests the assignment of a generation. */
  async sync(groupId: string, request: SyncRequest): Promise<SyncResult> {
    const group = this.#groups.get(groupId);
    return group === undefined ? refuseSync("unknown-member-id") : group.sync(request);
  }

  /** A heartbeat of a member. */
  heartbeat(groupId: string, claim: MemberClaim): GroupError | undefined {
    const group = this.#groups.get(groupId);
    return group === undefined ? "unknown-member-id" : group.heartbeat(claim);
  }

  /** Removes a member. */
  leave(groupId: string, memberId: string, instanceId: string | null): GroupError | undefined {
    const group = this.#groups.get(groupId);
    return group === undefined ? "unknown-member-id" : group.leave(memberId, instanceId);
  }

  /**
   * True if offsets may be committed. Without members only clients that do not claim to be one (generation -1) may commit:
   * consumers that assign partitions themselves, and administrators.
   */
  checkCommit(groupId: string, claim: MemberClaim): GroupError | undefined {
    const group = this.#groups.get(groupId);
    if (group !== undefined && group.memberCount > 0) return group.checkCommit(claim);
    return claim.generation < 0 ? undefined : "illegal-generation";
  }

  /** A group with members; `undefined` for any other. */
  describe(groupId: string): GroupDescription | undefined {
    const group = this.#groups.get(groupId);
    // An id whose client never joined does not count as a member.
    return group === undefined || group.memberCount === 0 ? undefined : group.describe();
  }

  /** All groups with members. */
  list(): GroupDescription[] {
    const groups = [...this.#groups.values()].filter(({ memberCount }) => memberCount > 0);
    return groups.map((group) => group.describe());
  }

  /** Removes all members. */
  close(): void {
    for (const group of Array.from(this.#groups.values())) group.close();
  }

  #create(groupId: string): ConsumerGroup {
    const createMemberId = (prefix: string): string =>
      `${prefix.slice(0, MEMBER_ID_PREFIX_CHARS_MAX)}-${this.#createId()}`;
    const group = new ConsumerGroup(groupId, this.limits, this.#time, createMemberId, () => {
      this.#groups.delete(groupId);
      this.#onEmpty(groupId);
    });
    this.#groups.set(groupId, group);
    return group;
  }

  #checkBounds(request: JoinRequest): GroupError | undefined {
    const { limits } = this;
    if (
      request.sessionTimeoutMs < limits.sessionTimeoutMsMin ||
      request.sessionTimeoutMs > limits.sessionTimeoutMsMax
    ) {
      return "invalid-session-timeout";
    }
    let bytes = 0;
    for (const { name, metadata } of request.protocols) bytes += name.length + metadata.length;
    return bytes > limits.metadataBytesMax ? "metadata-too-large" : undefined;
  }
}
