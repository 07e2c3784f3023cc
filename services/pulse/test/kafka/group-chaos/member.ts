// A member of a group over TCP that can leave, die and stall at any moment, as processes do.
import { setTimeout as sleep } from "node:timers/promises";
import { decodePlainBatch, splitBatches } from "@platform/log/batch";
import { ERROR_CODES } from "../../../src/kafka/protocol/error-codes.ts";
import {
  fetch,
  heartbeat,
  joinGroup,
  leaveGroup,
  offsetCommit,
  offsetFetch,
  syncGroup,
} from "../../../src/kafka/protocol/messages/index.ts";
import { KafkaClient } from "../client.ts";
import type { History } from "./history.ts";

/** Options of all members. */
export interface Membership {
  port: number;
  topic: string;
  group: string;
  partitions: number;
  sessionTimeoutMs: number;
  rebalanceTimeoutMs: number;
  heartbeatMs: number;
  history: History;
}

const { none, rebalanceInProgress, memberIdRequired, unknownMemberId } = ERROR_CODES;

/** Runs from its start until it leaves or dies. */
export class ChaosMember {
  readonly name: string;
  readonly instanceId: string | null;
  readonly ended: Promise<void>;
  readonly #of: Membership;
  #client: KafkaClient | undefined;
  #memberId = "";
  #generation = -1;
  /** The generation's place in the history. */
  #place = 0;
  #stallMs = 0;
  #state: "running" | "leaving" | "dead" = "running";
  /** Next offset of each assigned partition. */
  #positions = new Map<number, number>();
  #committed = new Map<number, number>();

  constructor(name: string, instanceId: string | null, membership: Membership) {
    this.name = name;
    this.instanceId = instanceId;
    this.#of = membership;
    this.ended = this.#run();
  }

  get isRunning(): boolean {
    return this.#state === "running";
  }

  /** Commits, sends LeaveGroup and ends. */
  leave(): void {
    if (this.#state === "running") this.#state = "leaving";
  }

  /** Ends immediately, without leaving the group. */
  die(): void {
    this.#state = "dead";
    this.#client?.socket.destroy();
  }

  /** Pauses for this time before its next step. */
  stall(ms: number): void {
    this.#stallMs = ms;
  }

  async #run(): Promise<void> {
    while (this.#state !== "dead") {
      try {
        this.#client = await KafkaClient.connect(this.#of.port);
        // It may have died while it connected.
        if (this.isDead()) this.#client.socket.destroy();
        await this.#take(this.#client);
        return;
      } catch {
        // The broker has gone, or this member has died.
        if (this.#state === "leaving") return;
        await sleep(50);
      } finally {
        this.#client?.socket.destroy();
      }
    }
  }

  isDead(): boolean {
    return this.#state === "dead";
  }

  async #take(client: KafkaClient): Promise<void> {
    while (this.#state === "running") {
      if (!(await this.#join(client))) continue;
      await this.#begin(client);
      while (this.#state === "running" && (await this.#turn(client)));
    }
    if (this.#state !== "leaving") return;
    await this.#commit(client);
    if (this.instanceId !== null) return;
    const members = [{ memberId: this.#memberId, groupInstanceId: null, reason: null }];
    await client.ask(leaveGroup, 5, { groupId: this.#of.group, members });
  }

  /** Joins and gets an assignment; false if it has to join again. */
  async #join(client: KafkaClient): Promise<boolean> {
    const { group, sessionTimeoutMs, rebalanceTimeoutMs, history } = this.#of;
    await this.#rest();
    const joined = await client.ask(joinGroup, 9, {
      groupId: group,
      sessionTimeoutMs,
      rebalanceTimeoutMs,
      memberId: this.#memberId,
      groupInstanceId: this.instanceId,
      protocolType: "consumer",
      protocols: [{ name: "range", metadata: Buffer.from(this.name) }],
    });
    if (joined.errorCode === memberIdRequired) this.#memberId = joined.memberId;
    if (joined.errorCode !== none) return this.#refuse(joined.errorCode);
    this.#memberId = joined.memberId;
    this.#generation = joined.generationId;
    this.#place = history.enter(joined.generationId);
    const isLeader = joined.leader === joined.memberId && !joined.skipAssignment;
    if (isLeader) history.rebalances++;
    await this.#rest();
    const synced = await client.ask(syncGroup, 5, {
      groupId: group,
      generationId: this.#generation,
      memberId: this.#memberId,
      groupInstanceId: this.instanceId,
      protocolType: "consumer",
      protocolName: "range",
      assignments: isLeader ? this.#assign(joined.members) : [],
    });
    if (synced.errorCode !== none) return this.#refuse(synced.errorCode);
    const assigned = JSON.parse(synced.assignment.toString() || "[]") as number[];
    this.#positions = new Map(assigned.map((partition) => [partition, 0]));
    return true;
  }

  #assign(members: readonly { memberId: string }[]) {
    const shares = members.map((): number[] => []);
    for (let partition = 0; partition < this.#of.partitions; partition++) {
      shares[partition % shares.length]!.push(partition);
    }
    return members.map(({ memberId }, index) => ({
      memberId,
      assignment: Buffer.from(JSON.stringify(shares[index])),
    }));
  }

  async #begin(client: KafkaClient): Promise<void> {
    const { group, topic, history } = this.#of;
    const before = history.readCommitted();
    const topics = [{ name: topic, partitionIndexes: [...this.#positions.keys()] }];
    const { groups } = await client.ask(offsetFetch, 8, { groups: [{ groupId: group, topics }] });
    this.#committed = new Map();
    for (const { partitionIndex, committedOffset } of groups[0]!.topics[0]?.partitions ?? []) {
      const offset = Math.max(0, committedOffset);
      history.begin(this.name, partitionIndex, offset, before);
      this.#positions.set(partitionIndex, offset);
      this.#committed.set(partitionIndex, offset);
    }
  }

  /** Reads, commits, shows that it lives; false if it has to join again. */
  async #turn(client: KafkaClient): Promise<boolean> {
    await this.#read(client);
    await this.#rest();
    if (!(await this.#commit(client))) return false;
    const { errorCode } = await client.ask(heartbeat, 4, {
      groupId: this.#of.group,
      generationId: this.#generation,
      memberId: this.#memberId,
      groupInstanceId: this.instanceId,
    });
    return errorCode === none || this.#refuse(errorCode);
  }

  async #read(client: KafkaClient): Promise<void> {
    const { topic, heartbeatMs, history } = this.#of;
    if (this.#positions.size === 0) {
      await sleep(heartbeatMs);
      return;
    }
    const partitions = Array.from(this.#positions, ([partition, fetchOffset]) => ({
      partition,
      fetchOffset,
      partitionMaxBytes: 20_000,
    }));
    const { topics } = await client.ask(fetch, 12, {
      maxWaitMs: heartbeatMs,
      minBytes: 1,
      maxBytes: 100_000,
      isolationLevel: 0,
      topics: [{ name: topic, partitions }],
    });
    await this.#rest();
    for (const { partitionIndex, records } of topics[0]?.partitions ?? []) {
      for (const batch of splitBatches(records ?? Buffer.alloc(0))) {
        for (const { offset, value } of decodePlainBatch(batch)!.records) {
          // A batch may begin before what was asked for.
          if (offset < this.#positions.get(partitionIndex)!) continue;
          history.process(this.name, partitionIndex, offset, value!.toString());
          this.#positions.set(partitionIndex, offset + 1);
        }
      }
    }
  }

  /** Commits what was processed; false if the broker refuses. */
  async #commit(client: KafkaClient): Promise<boolean> {
    const { group, topic, history } = this.#of;
    const changed = Array.from(this.#positions).filter(
      ([partition, offset]) => offset > (this.#committed.get(partition) ?? 0),
    );
    if (changed.length === 0) return true;
    const newest = history.readNewest();
    const { topics } = await client.ask(offsetCommit, 8, {
      groupId: group,
      generationId: this.#generation,
      memberId: this.#memberId,
      groupInstanceId: this.instanceId,
      topics: [
        {
          name: topic,
          partitions: changed.map(([partitionIndex, committedOffset]) => ({
            partitionIndex,
            committedOffset,
            committedMetadata: null,
          })),
        },
      ],
    });
    const errorCode = topics[0]!.partitions.find((one) => one.errorCode !== none)?.errorCode;
    if (errorCode !== undefined) {
      history.refusedCommits++;
      return this.#refuse(errorCode);
    }
    history.commit(this.name, this.#place, changed, newest);
    for (const [partition, offset] of changed) this.#committed.set(partition, offset);
    return true;
  }

  /** Prepares the next join after an error. Always returns false. */
  #refuse(errorCode: number): boolean {
    if (errorCode === unknownMemberId) this.#memberId = "";
    // Fenced: another process has this member's name.
    if (errorCode === ERROR_CODES.fencedInstanceId) this.die();
    if (errorCode !== rebalanceInProgress) this.#generation = -1;
    return false;
  }

  async #rest(): Promise<void> {
    const ms = this.#stallMs;
    this.#stallMs = 0;
    if (ms > 0) await sleep(ms);
  }
}
