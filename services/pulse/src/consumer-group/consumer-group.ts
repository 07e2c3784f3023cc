// A consumer group of the classic protocol: its generations and pending joins and syncs.
import { Deadline } from "./deadline.ts";
import {
  describeAssignment,
  isOfGeneration,
  describeGeneration,
  describeGroup,
  type Generation,
} from "./generation.ts";
import {
  chooseProtocol,
  hasSameProtocols,
  refuseJoin,
  refuseSync,
  updateMember,
  type Member,
} from "./member.ts";
import { isWaiting, Membership } from "./membership.ts";
import type {
  GroupDescription,
  GroupError,
  GroupLimits,
  GroupState,
  GroupTime,
  JoinRequest,
  JoinResult,
  MemberClaim,
  SyncRequest,
  SyncResult,
} from "./types.ts";

/*
 *            first join                 all joined, or timeout
 *   Empty ──────────────► PreparingRebalance ──────────────────────► CompletingRebalance
 *     ▲                       ▲          │ nobody is left                  │ the leader synced
 *     ▲                       ▲          │ no member left                  │ the leader synced
 *                             └───── join, leave, death, new metadata ── Stable
 *
 * Pending requests are answered: joins when the generation begins, syncs when the leader has synced or
 * the generation ends. The deadlines below guarantee it.
 */
type Phase =
  | { state: "Empty" }
  /** Ends at `endMs`, or when all have joined and no new member came since `quietMs`. */
  | { state: "PreparingRebalance"; endMs: number; quietMs: number }
  /** Members in `awaited` must sync before `endMs`, the leader above all. */
  | { state: "CompletingRebalance"; endMs: number; awaited: Set<string> }
  | { state: "Stable"; endMs: number; awaited: Set<string> }
  | { state: "Dead" };

const NO_BYTES = Buffer.alloc(0);

/** A consumer group. It calls `onEmpty` when its last member has left, and is not used after that. */
export class ConsumerGroup {
  readonly id: string;
  readonly #limits: GroupLimits;
  readonly #time: GroupTime;
  readonly #createMemberId: (prefix: string) => string;
  readonly #onEmpty: () => void;
  readonly #members = new Membership();
  #phase: Phase = { state: "Empty" };
  readonly #generation: Generation = { number: 0, protocolType: null, protocol: null };
  readonly #deadline: Deadline;

  constructor(
    id: string,
    limits: GroupLimits,
    time: GroupTime,
    createMemberId: (prefix: string) => string,
    onEmpty: () => void,
  ) {
    this.id = id;
    this.#limits = limits;
    this.#time = time;
    this.#createMemberId = createMemberId;
    this.#onEmpty = onEmpty;
    this.#deadline = new Deadline(time, () => this.#settle());
  }

  get state(): GroupState {
    return this.#phase.state;
  }

  get memberCount(): number {
    return this.#members.size;
  }

  /** Joins the next generation; answered when that begins. */
  join(request: JoinRequest): Promise<JoinResult> {
    return new Promise((resolve) => {
      const error = this.#admit(request, resolve);
      if (error !== undefined) resolve(refuseJoin(error.code, error.memberId ?? request.memberId));
      this.#settle();
    });
  }

  /** Requests the assignment; answered when the leader has sent it. */
  sync(request: SyncRequest): Promise<SyncResult> {
    return new Promise((resolve) => {
      const error = this.#receiveSync(request, resolve);
      if (error !== undefined) resolve(refuseSync(error));
      this.#settle();
    });
  }

  /** A heartbeat. `rebalance-in-progress` tells the member to join again. */
  heartbeat(claim: MemberClaim): GroupError | undefined {
    return this.#renewSession(claim, "PreparingRebalance");
  }

  /** True if a member may commit offsets now. Counts as a heartbeat. */
  checkCommit(claim: MemberClaim): GroupError | undefined {
    return this.#renewSession(claim, "CompletingRebalance");
  }

  /** Removes a member; a static one may be identified by its instance id alone. */
  leave(memberId: string, instanceId: string | null): GroupError | undefined {
    const isPending = instanceId === null && this.#members.takePending(memberId);
    const { error, member } = this.#members.findLeaving(memberId, instanceId);
    if (member !== undefined) this.#dismiss(member);
    this.#settle();
    return isPending ? undefined : error;
  }

  describe(): GroupDescription {
    return describeGroup(this.id, this.#phase.state, this.#generation, this.#members);
  }

  /** Removes all members at shutdown. */
  close(): void {
    for (const member of this.#members.list()) this.#remove(member, "unknown-member-id");
    this.#members.clearPending();
    this.#settle();
  }

  #admit(
    request: JoinRequest,
    answer: (result: JoinResult) => void,
  ): { code: GroupError; memberId?: string } | undefined {
    const { memberId, instanceId } = request;
    if (!this.#members.isCompatible(request, this.#generation.protocolType)) {
      return { code: "inconsistent-group-protocol" };
    }
    const occupant = this.#members.findInstance(instanceId);
    if (memberId === "") {
      if (occupant !== undefined) {
        this.#replace(occupant, request, answer);
        return undefined;
      }
      if (this.#members.size + this.#members.pendingCount >= this.#limits.membersMax) {
        return { code: "group-max-size-reached" };
      }
      const id = this.#createMemberId(instanceId ?? request.clientId);
      if (instanceId === null && request.needsMemberId) {
        this.#members.expect(id, this.#time.monotonicMs() + request.sessionTimeoutMs);
        return { code: "member-id-required", memberId: id };
      }
      this.#add(id, request, answer);
      return undefined;
    }
    if (this.#members.takePending(memberId)) {
      this.#add(memberId, request, answer);
      return undefined;
    }
    if (occupant !== undefined && occupant.id !== memberId) return { code: "fenced-instance-id" };
    const member = this.#members.get(memberId);
    if (member === undefined || (instanceId !== null && occupant === undefined)) {
      return { code: "unknown-member-id" };
    }
    this.#rejoin(member, request, answer);
    return undefined;
  }

  #add(id: string, request: JoinRequest, answer: (result: JoinResult) => void): void {
    const member = this.#members.add(id, request);
    this.#generation.protocolType = request.protocolType;
    member.join = answer;
    if (this.#phase.state === "PreparingRebalance") {
      // Other members are likely to join at the same time, so a first generation waits a little for them.
      const now = this.#time.monotonicMs();
      if (this.#phase.quietMs > now) this.#phase.quietMs = now + this.#limits.initialDelayMs;
      return;
    }
    this.#prepare();
  }

  #rejoin(member: Member, request: JoinRequest, answer: (result: JoinResult) => void): void {
    // A repeated request replaces the pending one, whose connection is gone.
    member.join?.(refuseJoin("rebalance-in-progress", member.id));
    member.join = undefined;
    const isChanged = !hasSameProtocols(member, request.protocols);
    const isLeader = member.id === this.#members.leader;
    updateMember(member, request);
    this.#touch(member);
    const { state } = this.#phase;
    const isAnswered =
      (state === "CompletingRebalance" && !isChanged) ||
      (state === "Stable" && !isChanged && !isLeader);
    if (isAnswered) {
      answer(describeGeneration(this.#generation, this.#members, member));
      return;
    }
    member.join = answer;
    if (state !== "PreparingRebalance") this.#prepare();
  }

  /** A returning static member without its id takes over its previous membership (KIP-345). */
  #replace(former: Member, request: JoinRequest, answer: (result: JoinResult) => void): void {
    const id = this.#createMemberId(former.instanceId!);
    const isLeader = this.#members.leader === former.id;
    former.join?.(refuseJoin("fenced-instance-id", former.id));
    former.sync?.(refuseSync("fenced-instance-id"));
    const member = this.#members.replace(former, id, request);
    this.#touch(member);
    const { state } = this.#phase;
    if (state === "Stable" && chooseProtocol(this.#members.list()) === this.#generation.protocol) {
      const generation = describeGeneration(this.#generation, this.#members, member);
      // A leader that cannot skip the assignment is answered as a follower.
      answer(
        isLeader && !request.canSkipAssignment
          ? { ...generation, leader: former.id, members: [] }
          : { ...generation, skipAssignment: isLeader },
      );
      return;
    }
    member.join = answer;
    if (state !== "PreparingRebalance") this.#prepare();
  }

  /** Ends the generation: all members must join again. */
  #prepare(): void {
    const isFirst = this.#phase.state === "Empty";
    for (const member of this.#members.list()) {
      member.sync?.(refuseSync("rebalance-in-progress"));
      member.sync = undefined;
    }
    const now = this.#time.monotonicMs();
    this.#phase = {
      state: "PreparingRebalance",
      endMs: now + this.#longestRebalanceMs(),
      quietMs: isFirst ? now + this.#limits.initialDelayMs : now,
    };
  }

  #longestRebalanceMs(): number {
    return Math.max(0, ...this.#members.list().map((member) => member.rebalanceTimeoutMs));
  }

  /** Begins a generation with the members that have joined. */
  #begin(now: number): void {
    for (const member of this.#members.list()) {
      // A static member is kept until its session ends, since it may be restarting.
      if (member.join === undefined && member.instanceId === null) {
        this.#remove(member, "unknown-member-id");
      }
    }
    const joined = this.#members.list().filter(({ join }) => join !== undefined);
    if (joined.length === 0) {
      if (this.#members.size > 0) this.#prepare();
      return;
    }
    this.#members.elect(joined);
    this.#generation.number++;
    this.#generation.protocol = chooseProtocol(this.#members.list());
    this.#phase = {
      state: "CompletingRebalance",
      endMs: now + this.#longestRebalanceMs(),
      awaited: new Set(joined.map(({ id }) => id)),
    };
    for (const member of joined) {
      const { join } = member;
      member.join = undefined;
      this.#touch(member);
      join!(describeGeneration(this.#generation, this.#members, member));
    }
  }

  #receiveSync(request: SyncRequest, answer: (result: SyncResult) => void): GroupError | undefined {
    const { error, member } = this.#members.findClaimed(request, this.#generation.number);
    if (member === undefined) return error;
    if (!isOfGeneration(request, this.#generation)) return "inconsistent-group-protocol";
    this.#touch(member);
    const phase = this.#phase;
    if (phase.state === "PreparingRebalance") return "rebalance-in-progress";
    if (phase.state === "Stable") {
      phase.awaited.delete(member.id);
      answer(describeAssignment(this.#generation, member));
      return undefined;
    }
    if (phase.state !== "CompletingRebalance") return "unknown-member-id";
    if (member.id === this.#members.leader) {
      const { assignmentBytesMax } = this.#limits;
      if (request.assignments.some(({ assignment }) => assignment.length > assignmentBytesMax)) {
        return "metadata-too-large";
      }
    }
    member.sync?.(refuseSync("rebalance-in-progress"));
    member.sync = answer;
    phase.awaited.delete(member.id);
    if (member.id === this.#members.leader) this.#assign(phase, request.assignments);
    return undefined;
  }

  #assign(
    { endMs, awaited }: { endMs: number; awaited: Set<string> },
    assignments: SyncRequest["assignments"],
  ): void {
    const given = new Map(assignments.map(({ memberId, assignment }) => [memberId, assignment]));
    this.#phase = { state: "Stable", endMs, awaited };
    for (const member of this.#members.list()) {
      member.assignment = given.get(member.id) ?? NO_BYTES;
      const { sync } = member;
      if (sync === undefined) continue;
      member.sync = undefined;
      this.#touch(member);
      sync(describeAssignment(this.#generation, member));
    }
  }

  #renewSession(claim: MemberClaim, refusing: GroupState): GroupError | undefined {
    const { error, member } = this.#members.findClaimed(claim, this.#generation.number);
    if (member === undefined) return error;
    this.#touch(member);
    return this.#phase.state === refusing ? "rebalance-in-progress" : undefined;
  }

  /** Removes a member that left or died, and starts a rebalance. */
  #dismiss(member: Member): void {
    this.#remove(member, "unknown-member-id");
    const { state } = this.#phase;
    if (state === "Stable" || state === "CompletingRebalance") this.#prepare();
  }

  #remove(member: Member, error: GroupError): void {
    this.#members.remove(member);
    member.join?.(refuseJoin(error, member.id));
    member.sync?.(refuseSync(error));
  }

  #touch(member: Member): void {
    member.sessionEndMs = this.#time.monotonicMs() + member.sessionTimeoutMs;
  }

  /** Runs what is due and schedules the rest. */
  #settle(): void {
    if (this.#phase.state === "Dead") return;
    const now = this.#time.monotonicMs();
    this.#expire(now);
    this.#dropUnsynced(now);
    if (this.#phase.state === "PreparingRebalance") {
      const isComplete =
        this.#members.pendingCount === 0 &&
        now >= this.#phase.quietMs &&
        this.#members.list().every(({ join }) => join !== undefined);
      if (isComplete || now >= this.#phase.endMs) this.#begin(now);
    }
    if (this.#members.size === 0) this.#generation.protocolType = null;
    if (this.#members.size === 0 && this.#members.pendingCount === 0) {
      this.#phase = { state: "Dead" };
      this.#deadline.clear();
      this.#onEmpty();
      return;
    }
    if (this.#members.size === 0) this.#phase = { state: "Empty" };
    this.#arm(now);
  }

  #expire(now: number): void {
    this.#members.expirePending(now);
    for (const member of this.#members.list()) {
      if (!isWaiting(member) && now >= member.sessionEndMs) this.#dismiss(member);
    }
  }

  /** Members that send heartbeats but never request their assignment would block partitions. */
  #dropUnsynced(now: number): void {
    const phase = this.#phase;
    if (phase.state !== "CompletingRebalance" && phase.state !== "Stable") return;
    if (now < phase.endMs) return;
    if (phase.state === "Stable") phase.endMs = Infinity;
    const unsynced = [...phase.awaited].flatMap((id) => this.#members.get(id) ?? []);
    for (const member of unsynced) this.#remove(member, "unknown-member-id");
    if (unsynced.length > 0 || phase.state === "CompletingRebalance") this.#prepare();
  }

  /** Arms the timer for the earliest deadline. Heartbeats postpone deadlines without it, so it may fire with nothing due. */
  #arm(now: number): void {
    let nextMs = this.#members.findNextEndMs();
    const phase = this.#phase;
    if (phase.state === "CompletingRebalance" || phase.state === "Stable") {
      nextMs = Math.min(nextMs, phase.endMs);
    }
    if (phase.state === "PreparingRebalance") {
      nextMs = Math.min(nextMs, phase.endMs, phase.quietMs > now ? phase.quietMs : Infinity);
    }
    this.#deadline.set(nextMs);
  }
}
