// Posts received messages to the targets of their rules, with retries that survive restarts.
import type { Logger } from "@platform/kernel/log";
import { every, SetBackWatch, type RepeatingTimer } from "@platform/kernel/time";
import { isDamaged } from "../database/checksum.ts";
import type { InboundForwardRow, InboundRow } from "../database/inbound.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import type { NotifyMetrics } from "../metrics.ts";
import {
  CALL_DELAY_MS_MAX,
  callTarget,
  planCall,
  type CallParts,
  type CallResult,
} from "../webhook/signed-call.ts";
import { createPayload } from "./payload.ts";
import type { InboundRules } from "./rules.ts";
import type { InboundStore } from "./store.ts";

/** Options of {@link Forwarder}. */
export interface ForwarderOptions extends CallParts {
  database: NotifyDatabase;
  /** See `claimMark`. */
  leaseMark: number;
  rules: InboundRules;
  store: InboundStore;
  metrics: NotifyMetrics;
  log: Logger;
}

const POLL_MS = 1_000;
/** Longer than the timeout of a request. */
const LEASE_MS = 30_000;
/** A document is held in memory during its request. */
const CONCURRENCY_MAX = 8;
const CONCURRENCY_PER_RULE_MAX = 2;

/** Forwards received messages. */
export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #active = new Map<string, number>();
  readonly #attempts = new Set<Promise<void>>();
  readonly #setBack = new SetBackWatch();
  #timer: RepeatingTimer | undefined;
  #isStopped = false;

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /** Starts to forward due messages. */
  start(): void {
    const onError = (error: unknown): void =>
      this.#options.log.error("reading due inbound forwards failed", { error });
    this.#timer = every(POLL_MS, () => this.#fill(), onError);
    this.wake();
  }

  /** Looks for due forwards now. */
  wake(): void {
    if (!this.#isStopped) void this.#timer?.run();
  }

  /** Stops; attempts in flight have until `ms`, then their leases end and they are repeated. */
  async stop(ms: number): Promise<void> {
    this.#isStopped = true;
    await this.#timer?.stop();
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    await Promise.race([Promise.allSettled(this.#attempts), deadline]);
    clearTimeout(timer);
  }

  // One forward per rule in turn, so that a rule with many or slow forwards does not delay the others.
  async #fill(): Promise<void> {
    const nowMs = this.#options.clock.now();
    await this.#setBack.follow(nowMs, () => this.#moveUp(nowMs));
    for (let found = true; found && !this.#isStopped;) {
      found = false;
      for (const ruleId of await this.#listDueRules()) {
        if (this.#isStopped || this.#attempts.size >= CONCURRENCY_MAX) return;
        if ((this.#active.get(ruleId) ?? 0) >= CONCURRENCY_PER_RULE_MAX) continue;
        const forward = await this.#claim(ruleId);
        if (forward === undefined) continue;
        found = true;
        this.#run(forward);
      }
    }
  }

  #run(forward: InboundForwardRow): void {
    const { rule_id: ruleId } = forward;
    this.#active.set(ruleId, (this.#active.get(ruleId) ?? 0) + 1);
    const attempt = this.#attempt(forward)
      .catch((error: unknown) =>
        this.#options.log.error("recording an inbound forward failed", { error }),
      )
      .finally(() => {
        this.#attempts.delete(attempt);
        const left = this.#active.get(ruleId)! - 1;
        if (left > 0) this.#active.set(ruleId, left);
        else this.#active.delete(ruleId);
        this.wake();
      });
    this.#attempts.add(attempt);
  }

  async #attempt(forward: InboundForwardRow): Promise<void> {
    const { clock, metrics, log } = this.#options;
    const result = await this.#post(forward);
    const nowMs = clock.now();
    const { status, detail, dueAt } = planCall(result, forward.attempts, nowMs);
    await this.#record(forward, { status, detail, due_at: dueAt, updated_at: nowMs });
    metrics.countForward(status);
    const level = status === "delivered" ? "info" : "warn";
    log[level]("inbound message forwarded", {
      inbound_id: forward.inbound_id,
      rule_id: forward.rule_id,
      status,
      attempts: forward.attempts + 1,
      detail,
    });
  }

  async #post(forward: InboundForwardRow): Promise<CallResult> {
    const { rules, store } = this.#options;
    const { inbound_id: id, rule_id: ruleId } = forward;
    const rule = rules.all.find((one) => one.id === ruleId);
    // Another node may have created it; the rules are read again within a minute.
    if (rule === undefined) return { kind: "retry", detail: "the rule is not known yet" };
    const row = await store.get(id);
    let content: Buffer | undefined;
    try {
      content = await store.readContent(id);
    } catch (error) {
      if (!isDamaged(error)) throw error;
      return { kind: "failed", detail: error.message };
    }
    if (row === undefined || content === undefined) {
      return { kind: "failed", detail: "the content has expired" };
    }
    const recipients = JSON.parse(forward.recipients) as string[];
    const payload = await createPayload(row, content, { ruleId, recipients }).catch(
      (error: Error) => ({ ...describeUnparsed(row, ruleId), parse_error: error.message }),
    );
    const secrets = rules.listSecrets(rule);
    const call = { id: `${id}-${ruleId}`, url: rule.forward_to, body: JSON.stringify(payload) };
    return callTarget(this.#options, { ...call, secrets, trace: forward });
  }

  // Times that a clock ahead has planned.
  async #moveUp(nowMs: number): Promise<void> {
    await this.#options.database.db
      .updateTable("notify_inbound_forwards")
      .set({ due_at: nowMs })
      .where("due_at", ">", nowMs + CALL_DELAY_MS_MAX)
      .execute();
  }

  async #listDueRules(): Promise<string[]> {
    const rows = await this.#options.database.db
      .selectFrom("notify_inbound_forwards")
      .select("rule_id")
      .distinct()
      .where("due_at", "<=", this.#options.clock.now())
      .execute();
    return rows.map(({ rule_id }) => rule_id);
  }

  async #claim(ruleId: string): Promise<InboundForwardRow | undefined> {
    const { database, leaseMark, clock } = this.#options;
    const nowMs = clock.now();
    const row = await database.db
      .selectFrom("notify_inbound_forwards")
      .selectAll()
      .where("rule_id", "=", ruleId)
      .where("due_at", "<=", nowMs)
      .orderBy("due_at")
      .limit(1)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const { numUpdatedRows } = await database.db
      .updateTable("notify_inbound_forwards")
      .set({ due_at: nowMs + LEASE_MS, leased: leaseMark, fence: row.fence + 1 })
      .where("inbound_id", "=", row.inbound_id)
      .where("rule_id", "=", ruleId)
      .where("fence", "=", row.fence)
      .executeTakeFirst();
    return numUpdatedRows === 1n ? { ...row, fence: row.fence + 1 } : undefined;
  }

  async #record(
    { inbound_id, rule_id, fence, attempts }: InboundForwardRow,
    values: Pick<InboundForwardRow, "status" | "detail" | "due_at" | "updated_at">,
  ): Promise<void> {
    await this.#options.database.db
      .updateTable("notify_inbound_forwards")
      .set({ ...values, leased: 0, attempts: attempts + 1 })
      .where("inbound_id", "=", inbound_id)
      .where("rule_id", "=", rule_id)
      .where("fence", "=", fence)
      .execute();
  }
}

function describeUnparsed(row: InboundRow, ruleId: string): object {
  const { id, header_from, subject, message_id, received_at } = row;
  const receivedAt = new Date(received_at).toISOString();
  return { id, rule_id: ruleId, from: header_from, subject, message_id, received_at: receivedAt };
}
