// Members of a group: by id, static members by instance id, assigned ids, the leader.
import { findCommonProtocols, createMember, type Member } from "./member.ts";
import type { GroupError, JoinRequest, MemberClaim } from "./types.ts";

/** The members of one group. The first one leads; when it leaves, the next one does. */
export class Membership {
  readonly #members = new Map<string, Member>();
  /** Static members: instance id → member id. */
  readonly #instances = new Map<string, string>();
  /** Assigned ids whose members have not joined yet, with the end of their wait. */
  readonly #pending = new Map<string, number>();
  #leader: string | undefined;

  get size(): number {
    return this.#members.size;
  }

  /** Number of assigned ids not used yet. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  get leader(): string | undefined {
    return this.#leader;
  }

  /** A copy of all members in the order of joining. */
  list(): Member[] {
    return [...this.#members.values()];
  }

  get(id: string): Member | undefined {
    return this.#members.get(id);
  }

  /** The static member of an instance. */
  findInstance(instanceId: string | null): Member | undefined {
    const id = instanceId === null ? undefined : this.#instances.get(instanceId);
    return id === undefined ? undefined : this.#members.get(id);
  }

  /** The member that a claim identifies, or an error. */
  findClaimed(claim: MemberClaim, generation: number): { error?: GroupError; member?: Member } {
    const { memberId, instanceId } = claim;
    if (instanceId !== null) {
      const occupant = this.#instances.get(instanceId);
      if (occupant === undefined) return { error: "unknown-member-id" };
      if (occupant !== memberId) return { error: "fenced-instance-id" };
    }
    const member = this.#members.get(memberId);
    if (member === undefined) return { error: "unknown-member-id" };
    return claim.generation === generation ? { member } : { error: "illegal-generation" };
  }

  /** The leaving member: a static one may be identified by its instance id alone. */
  findLeaving(
    memberId: string,
    instanceId: string | null,
  ): { error?: GroupError; member?: Member } {
    const member = instanceId === null ? this.get(memberId) : this.findInstance(instanceId);
    if (member === undefined) return { error: "unknown-member-id" };
    const isOther = memberId !== "" && member.id !== memberId;
    return isOther ? { error: "fenced-instance-id" } : { member };
  }

  /** True if the protocols of a joining member are compatible with those of all others. */
  isCompatible(request: JoinRequest, protocolType: string | null): boolean {
    if (request.protocolType === "" || request.protocols.length === 0) return false;
    const others = this.list().filter(
      ({ id, instanceId }) =>
        id !== request.memberId && (instanceId === null || instanceId !== request.instanceId),
    );
    if (others.length === 0) return true;
    if (request.protocolType !== protocolType) return false;
    const names = new Set(request.protocols.map(({ name }) => name));
    return findCommonProtocols(others).some((name) => names.has(name));
  }

  add(id: string, request: JoinRequest): Member {
    const member = createMember(id, request);
    this.#members.set(id, member);
    if (member.instanceId !== null) this.#instances.set(member.instanceId, id);
    this.#leader ??= id;
    return member;
  }

  /** Replaces a static member; the new one keeps its assignment and leadership. */
  replace(former: Member, id: string, request: JoinRequest): Member {
    this.#members.delete(former.id);
    if (this.#leader === former.id) this.#leader = id;
    const member = this.add(id, request);
    member.assignment = former.assignment;
    return member;
  }

  remove(member: Member): void {
    this.#members.delete(member.id);
    if (member.instanceId !== null) this.#instances.delete(member.instanceId);
    if (this.#leader === member.id) this.#leader = this.#members.keys().next().value;
  }

  /** Ensures that one of `candidates` leads. */
  elect(candidates: readonly Member[]): void {
    if (candidates.some(({ id }) => id === this.#leader)) return;
    this.#leader = candidates[0]?.id;
  }

  /** Records an id assigned to a member that has not joined yet. */
  expect(id: string, endMs: number): void {
    this.#pending.set(id, endMs);
  }

  /** Removes an assigned id; false if it is unknown. */
  takePending(id: string): boolean {
    return this.#pending.delete(id);
  }

  /** Removes expired ids. */
  expirePending(now: number): void {
    for (const [id, endMs] of this.#pending) {
      if (now >= endMs) this.#pending.delete(id);
    }
  }

  clearPending(): void {
    this.#pending.clear();
  }

  /** When the next assigned id or silent member expires; Infinity if there is none. */
  findNextEndMs(): number {
    let nextMs = Infinity;
    for (const endMs of this.#pending.values()) nextMs = Math.min(nextMs, endMs);
    for (const member of this.#members.values()) {
      if (!isWaiting(member)) nextMs = Math.min(nextMs, member.sessionEndMs);
    }
    return nextMs;
  }
}

/** True if a member has a pending request: it cannot send heartbeats then and does not expire. */
export function isWaiting(member: Member): boolean {
  return member.join !== undefined || member.sync !== undefined;
}
