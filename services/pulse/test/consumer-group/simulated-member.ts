// A consumer as a program: joins, syncs, sends heartbeats, starts over when it is told to.
import type { GroupCoordinator } from "../../src/consumer-group/index.ts";
import type { SimulatedTime } from "./simulated-time.ts";

const heartbeatMs = 3_000;

/** Options of a simulated member. */
export interface SimulatedMemberOptions {
  name: string;
  isStatic: boolean;
  sessionTimeoutMs: number;
  rebalanceTimeoutMs: number;
  /** Numbers that the leader shares out among the members. */
  partitions: number;
}

/** One member. It does nothing while it is stalled, and nothing more once it has died. */
export class SimulatedMember {
  readonly options: SimulatedMemberOptions;
  /** Assignment of the current generation; `undefined` outside of one. */
  assigned: { generation: number; partitions: number[] } | undefined;
  readonly #coordinator: GroupCoordinator;
  readonly #time: SimulatedTime;
  #memberId = "";
  #isGone = false;
  #stalledUntilMs = 0;

  constructor(coordinator: GroupCoordinator, time: SimulatedTime, options: SimulatedMemberOptions) {
    this.#coordinator = coordinator;
    this.#time = time;
    this.options = options;
    void this.#run();
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Vanishes without a word. */
  die(): void {
    this.#isGone = true;
  }

  /** Says good-bye and goes. */
  leave(): void {
    this.#isGone = true;
    this.#coordinator.leave("g", this.#memberId, this.#instanceId);
  }

  /** Does nothing for a while, as in a long pause. */
  stall(ms: number): void {
    this.#stalledUntilMs = this.#time.monotonicMs() + ms;
  }

  get #instanceId(): string | null {
    return this.options.isStatic ? this.options.name : null;
  }

  async #run(): Promise<void> {
    while (await this.#isActive()) {
      const generation = await this.#enter();
      if (generation === undefined) continue;
      while (await this.#isActive()) {
        const claim = { memberId: this.#memberId, instanceId: this.#instanceId, generation };
        const error = this.#coordinator.heartbeat("g", claim);
        if (error !== undefined) {
          this.assigned = undefined;
          if (error !== "rebalance-in-progress") this.#memberId = "";
          break;
        }
        await this.#sleep(heartbeatMs);
      }
    }
  }

  /** Joins and syncs once; gives the generation if that went well. */
  async #enter(): Promise<number | undefined> {
    const { sessionTimeoutMs, rebalanceTimeoutMs } = this.options;
    const joined = await this.#coordinator.join("g", {
      memberId: this.#memberId,
      instanceId: this.#instanceId,
      clientId: this.options.name,
      clientHost: "",
      sessionTimeoutMs,
      rebalanceTimeoutMs,
      protocolType: "consumer",
      protocols: [{ name: "range", metadata: Buffer.alloc(0) }],
      needsMemberId: true,
      canSkipAssignment: true,
    });
    if (!(await this.#isActive())) return undefined;
    if (joined.error !== undefined) {
      this.#memberId = joined.error === "member-id-required" ? joined.memberId : "";
      await this.#sleep(100);
      return undefined;
    }
    this.#memberId = joined.memberId;
    const isLeading = joined.leader === joined.memberId && !joined.skipAssignment;
    const synced = await this.#coordinator.sync("g", {
      memberId: joined.memberId,
      instanceId: this.#instanceId,
      generation: joined.generation,
      protocolType: joined.protocolType,
      protocol: joined.protocol,
      assignments: isLeading
        ? joined.members.map(({ memberId }, index) => ({
            memberId,
            assignment: Buffer.from(
              JSON.stringify(
                Array.from({ length: this.options.partitions }, (_, number) => number).filter(
                  (number) => number % joined.members.length === index,
                ),
              ),
            ),
          }))
        : [],
    });
    if (!(await this.#isActive())) return undefined;
    if (synced.error !== undefined) {
      if (synced.error !== "rebalance-in-progress") this.#memberId = "";
      await this.#sleep(100);
      return undefined;
    }
    const text = synced.assignment.toString() || "[]";
    this.assigned = { generation: joined.generation, partitions: JSON.parse(text) as number[] };
    return joined.generation;
  }

  /** Waits while it is stalled; false once it is gone. */
  async #isActive(): Promise<boolean> {
    while (!this.#isGone && this.#time.monotonicMs() < this.#stalledUntilMs) await this.#sleep(50);
    return !this.#isGone;
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#time.after(ms, resolve));
  }
}
