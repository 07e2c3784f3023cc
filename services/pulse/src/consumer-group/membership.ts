// Who belongs to a group: members by id, static members by instance id, ids given out, the leader.
import { findCommonProtocols, createMember, type Member } from "./member.ts";
import type { GroupError, JoinRequest, MemberClaim } from "./types.ts";

/** The members of one group. The first to come leads; when it goes, the next one does. */
export class Membership {
  readonly #members = new Map<string, Member>();
  /** Static members: instance id → member id. */
  readonly #instances = new Map<string, string>();
  /** Ids that were given out and whose members have not joined yet, with the end of their wait. */
  readonly #pending = new Map<string, number>();
  #leader: string | undefined;

  get size(): number {
    return this.#members.size;
  }

  /** Ids that were given out and not used yet. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  get leader(): string | undefined {
    return this.#leader;
  }

  /** All members in the order of their coming; safe against changes while it is walked. */
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

  /** The member that a claim names; otherwise why it names none. */
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

  /** The member that goes: a static one may be named by its instance id alone. */
  findLeaving(
    memberId: string,
    instanceId: string | null,
  ): { error?: GroupError; member?: Member } {
    const member = instanceId === null ? this.get(memberId) : this.findInstance(instanceId);
    if (member === undefined) return { error: "unknown-member-id" };
    const isOther = memberId !== "" && member.id !== memberId;
    return isOther ? { error: "fenced-instance-id" } : { member };
  }

  /** Whether the protocols of a joining member go together with those of all others. */
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

  /** A new member takes the place of a static one, with its assignment and its lead. */
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

  /** Sees to it that one of `candidates` leads. */
  elect(candidates: readonly Member[]): void {
    if (candidates.some(({ id }) => id === this.#leader)) return;
    this.#leader = candidates[0]?.id;
  }

  /** Notes an id that was given to a member that has yet to join with it. */
  expect(id: string, endMs: number): void {
    this.#pending.set(id, endMs);
  }

  /** Takes a given id back; false if it is not one. */
  takePending(id: string): boolean {
    return this.#pending.delete(id);
  }

  /** Forgets given ids whose time is up. */
  expirePending(now: number): void {
    for (const [id, endMs] of this.#pending) {
      if (now >= endMs) this.#pending.delete(id);
    }
  }

  clearPending(): void {
    this.#pending.clear();
  }

  /** When the next given id or silent member is to be forgotten; Infinity if none is. */
  findNextEndMs(): number {
    let nextMs = Infinity;
    for (const endMs of this.#pending.values()) nextMs = Math.min(nextMs, endMs);
    for (const member of this.#members.values()) {
      if (!isWaiting(member)) nextMs = Math.min(nextMs, member.sessionEndMs);
    }
    return nextMs;
  }
}

/** Whether a member waits for an answer: it cannot give a sign of life then, and is not missed. */
export function isWaiting(member: Member): boolean {
  return member.join !== undefined || member.sync !== undefined;
}
