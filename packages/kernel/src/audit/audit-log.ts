// An audit log: a chain of keyed hashes, which reveals changed and deleted rows.
import { createHmac } from "node:crypto";
import type { Database } from "../db/database.ts";
import type { Clock } from "../time/index.ts";
import type { AuditRow, AuditTables } from "./tables.ts";

const WAITING_MAX = 10_000;
const BATCH_MAX = 500;
const TEXT_MAX = 512;
const DETAIL_MAX = 4096;

/** An event. Text beyond 512 characters is cut off; `detail` contains no secrets. */
export interface AuditEvent {
  /** `login`, `role.create`, … */
  action: string;
  outcome?: "success" | "failure";
  /** `user:<id>`, `client:<id>`, `system`, `anonymous`. */
  actor: string;
  /** `user:<id>`, `role:<name>`, … */
  target?: string;
  ip?: string;
  detail?: Readonly<Record<string, unknown>>;
}

/** The result of `verify`. */
export type AuditVerdict =
  | { intact: true; events: number }
  | { intact: false; events: number; brokenAt: number };

/** Filter of a list of events, newest first. */
export interface AuditFilter {
  before?: number | undefined;
  limit: number;
  target?: string | undefined;
  action?: string | undefined;
  /** As in events: `user:<id>`. */
  actor?: string | undefined;
  /** Time of the earliest event, epoch ms. */
  fromMs?: number | undefined;
  /** The events before this time, epoch ms. */
  untilMs?: number | undefined;
}

/** Options of {@link AuditLog}. */
export interface AuditLogOptions {
  database: Database<AuditTables>;
  /** Name of the table with the events; that of its head has `_head` behind it. */
  table: string;
  clock: Clock;
  /** Keys the hashes: write access to the database is not enough to forge a chain. */
  secret: Buffer;
}

/** Writes and reads the log. Concurrent events share one transaction. */
export class AuditLog {
  readonly #database: Database<AuditTables>;
  // Kysely knows the tables by the names of their types.
  readonly #events: "audit";
  readonly #head: "audit_head";
  readonly #clock: Clock;
  readonly #key: Buffer;
  #waiting: { event: AuditEvent; at: number; done: PromiseWithResolvers<void> }[] = [];
  #writing = false;

  constructor({ database, table, clock, secret }: AuditLogOptions) {
    this.#database = database;
    this.#events = table as "audit";
    this.#head = `${table}_head` as "audit_head";
    this.#clock = clock;
    this.#key = createHmac("sha256", secret).update("audit").digest();
  }

  /** Resolves when the event is stored. Rejects if it cannot be stored or too many events wait. */
  record(event: AuditEvent): Promise<void> {
    if (this.#waiting.length >= WAITING_MAX)
      return Promise.reject(new Error("audit log: too many events wait"));
    const done = Promise.withResolvers<void>();
    this.#waiting.push({ event, at: this.#clock.now(), done });
    if (!this.#writing) void this.#write();
    return done.promise;
  }

  /** Events, newest first. */
  list(filter: AuditFilter): Promise<AuditRow[]> {
    let query = this.#database.db.selectFrom(this.#events).selectAll();
    if (filter.before !== undefined) query = query.where("seq", "<", filter.before);
    if (filter.target !== undefined) query = query.where("target", "=", filter.target);
    if (filter.action !== undefined) query = query.where("action", "=", filter.action);
    if (filter.actor !== undefined) query = query.where("actor", "=", filter.actor);
    if (filter.fromMs !== undefined) query = query.where("at", ">=", filter.fromMs);
    if (filter.untilMs !== undefined) query = query.where("at", "<", filter.untilMs);
    return query.orderBy("seq", "desc").limit(filter.limit).execute();
  }

  /** Events that a user caused or that affected the user's account, newest first. `subject` is `user:<id>`. */
  async listOf(subject: string, before: number | undefined, limit: number): Promise<AuditRow[]> {
    const [caused, received] = await Promise.all([
      this.list({ actor: subject, before, limit }),
      this.list({ target: subject, before, limit }),
    ]);
    const rows = new Map([...caused, ...received].map((row) => [row.seq, row]));
    return [...rows.values()].sort((one, other) => other.seq - one.seq).slice(0, limit);
  }

  /** Verifies the whole chain. */
  async verify(): Promise<AuditVerdict> {
    const { db } = this.#database;
    const head = await db.selectFrom(this.#head).selectAll().executeTakeFirstOrThrow();
    let previous = head.anchor;
    let expected = head.first_seq;
    let events = 0;
    while (expected <= head.seq) {
      const rows = await db
        .selectFrom(this.#events)
        .selectAll()
        .where("seq", ">=", expected)
        .where("seq", "<=", head.seq)
        .orderBy("seq")
        .limit(1000)
        .execute();
      if (rows.length === 0) return { intact: false, events, brokenAt: expected };
      for (const row of rows) {
        if (row.seq !== expected || row.hash !== this.#hash(previous, row)) {
          return { intact: false, events, brokenAt: expected };
        }
        previous = row.hash;
        expected += 1;
        events += 1;
      }
    }
    return previous === head.hash
      ? { intact: true, events }
      : { intact: false, events, brokenAt: head.seq };
  }

  /** Deletes events older than `beforeMs`; the chain then begins after them. */
  async sweep(beforeMs: number): Promise<void> {
    await this.#database.transaction(async (trx) => {
      const last = await trx
        .selectFrom(this.#events)
        .select(["seq", "hash"])
        .where("at", "<", beforeMs)
        .orderBy("seq", "desc")
        .limit(1)
        .executeTakeFirst();
      if (last === undefined) return;
      await trx.deleteFrom(this.#events).where("seq", "<=", last.seq).execute();
      await trx
        .updateTable(this.#head)
        .set({ first_seq: last.seq + 1, anchor: last.hash })
        .execute();
    });
  }

  async #write(): Promise<void> {
    this.#writing = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH_MAX);
      try {
        await this.#append(batch);
        for (const { done } of batch) done.resolve();
      } catch (error) {
        for (const { done } of batch) done.reject(error);
      }
    }
    this.#writing = false;
  }

  #append(batch: readonly { event: AuditEvent; at: number }[]): Promise<void> {
    return this.#database.transaction(async (trx) => {
      // The update locks the head until the commit: events of other nodes come before or after this batch.
      const head = await trx
        .updateTable(this.#head)
        .set((value) => ({ seq: value("seq", "+", batch.length) }))
        .returning(["seq", "hash"])
        .executeTakeFirstOrThrow();
      let seq = head.seq - batch.length;
      let previous = head.hash;
      const rows = batch.map(({ event, at }) => {
        seq += 1;
        const row = {
          seq,
          at,
          action: event.action,
          outcome: event.outcome ?? ("success" as const),
          actor: cut(event.actor),
          target: cut(event.target ?? ""),
          ip: cut(event.ip ?? ""),
          detail: encodeDetail(event.detail ?? {}),
        };
        previous = this.#hash(previous, row);
        return { ...row, hash: previous };
      });
      await trx.insertInto(this.#events).values(rows).execute();
      await trx.updateTable(this.#head).set({ hash: previous }).execute();
    });
  }

  #hash(previous: string, row: Omit<AuditRow, "hash">): string {
    const { seq, at, action, outcome, actor, target, ip, detail } = row;
    return createHmac("sha256", this.#key)
      .update(JSON.stringify([previous, seq, at, action, outcome, actor, target, ip, detail]))
      .digest("base64url");
  }
}

function encodeDetail(detail: Readonly<Record<string, unknown>>): string {
  const text = JSON.stringify(detail);
  return text.length > DETAIL_MAX ? '{"cut":true}' : text;
}

function cut(text: string): string {
  return text.slice(0, TEXT_MAX);
}
