// Webhooks: their settings, and the outbox of their calls.
import type { Transaction } from "kysely";
import { PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import { isWhole, sumFields } from "../database/checksum.ts";
import type { NotifyDatabase, NotifyTables } from "../database/schema.ts";
import type { WebhookCallRow, WebhookRow } from "../database/webhook.ts";
import type { WebhookEvent, WebhookEventType } from "./event.ts";
import type { CallState } from "./signed-call.ts";
import type { NewSecret, SigningSecrets } from "./signing-secrets.ts";

/** Options of {@link Webhooks}. */
export interface WebhooksOptions {
  database: NotifyDatabase;
  /** See `claimMark`. */
  leaseMark: number;
  clock: Clock;
  ids: IdSource;
  secrets: SigningSecrets;
  /** Called when calls were added. */
  onCalls: () => void;
}

/** A webhook with its secret, which is shown once. */
export interface WebhookWithSecret extends Pick<NewSecret, "secret"> {
  row: WebhookRow;
}

/** A pending call with the secrets that sign it. */
export interface DueCall {
  call: WebhookCallRow;
  url: string;
  secrets: string[];
  /** True if the payload does not match its checksum: it must not be sent. */
  isDamaged: boolean;
}

const WEBHOOKS_MAX = 100;
const KNOWN_MS = 1_000;
const RETENTION_MS = 7 * 24 * 3_600_000;
const PENDING_MAX = 100_000;

/** The webhooks of the service. */
export class Webhooks {
  readonly #options: WebhooksOptions;
  #known: { rows: Promise<WebhookRow[]>; atMs: number } | undefined;

  constructor(options: WebhooksOptions) {
    this.#options = options;
  }

  /** Creates a webhook; its secret is shown only now. An empty list of events means all. */
  async create(url: string, events: readonly WebhookEventType[]): Promise<WebhookWithSecret> {
    const { database, clock, ids, secrets } = this.#options;
    if ((await this.list()).length >= WEBHOOKS_MAX) {
      throw new PlatformError("conflict", `There are ${WEBHOOKS_MAX} webhooks, the maximum.`);
    }
    const id = ids.uuid();
    const { secret, columns } = secrets.create(id);
    const shown = { id, url, events: JSON.stringify(events), created_at: clock.now() };
    const row = { ...shown, ...columns };
    await database.db.insertInto("notify_webhooks").values(row).execute();
    this.#known = undefined;
    return { row, secret };
  }

  async list(): Promise<WebhookRow[]> {
    return this.#options.database.db
      .selectFrom("notify_webhooks")
      .selectAll()
      .orderBy("id")
      .execute();
  }

  /** Deletes a webhook and its calls; throws `not_found`. */
  async remove(id: string): Promise<void> {
    const { db } = this.#options.database;
    const { numDeletedRows } = await db
      .deleteFrom("notify_webhooks")
      .where("id", "=", id)
      .executeTakeFirst();
    this.#known = undefined;
    if (numDeletedRows === 0n) throw missing();
  }

  /** Replaces the secret; for 24 hours the old one signs as well. Throws `not_found`. */
  async rotate(id: string): Promise<WebhookWithSecret> {
    const { database, secrets } = this.#options;
    const row = await this.#find(id);
    const { secret, columns } = secrets.rotate(row);
    await database.db.updateTable("notify_webhooks").set(columns).where("id", "=", id).execute();
    this.#known = undefined;
    return { row: { ...row, ...columns }, secret };
  }

  /** Adds the calls of events in a transaction. */
  async addIn(trx: Transaction<NotifyTables>, events: readonly WebhookEvent[]): Promise<void> {
    if (events.length === 0) return;
    const webhooks = await this.#readKnown();
    const { ids, onCalls } = this.#options;
    const calls = events.flatMap(({ type, atMs, data, trace }) => {
      const payload = JSON.stringify({ type, timestamp: new Date(atMs).toISOString(), data });
      return webhooks
        .filter((webhook) => wants(webhook, type))
        .map((webhook) => ({ webhook, id: `evt_${ids.uuid()}` }))
        .map(({ webhook, id }): WebhookCallRow => ({
          id,
          webhook_id: webhook.id,
          checksum: sumFields([id, type, payload]),
          type,
          payload,
          status: "pending",
          attempts: 0,
          due_at: atMs,
          leased: 0,
          detail: null,
          created_at: atMs,
          traceparent: trace?.traceparent ?? null,
          tracestate: trace?.tracestate ?? null,
        }));
    });
    if (calls.length === 0) return;
    await trx.insertInto("notify_webhook_calls").values(calls).execute();
    onCalls();
  }

  /** Returns the webhooks, at most a second old. */
  async listKnown(): Promise<readonly WebhookRow[]> {
    return this.#readKnown();
  }

  /** Makes calls due that are later than `latestMs`: a clock that was ahead has planned them. */
  async moveUp(nowMs: number, latestMs: number): Promise<void> {
    await this.#options.database.db
      .updateTable("notify_webhook_calls")
      .set({ due_at: nowMs })
      .where("due_at", ">", latestMs)
      .execute();
  }

  /** Makes the leases of this process's predecessor due. Only before the first lease. */
  async releaseOwn(nowMs: number): Promise<void> {
    await this.#options.database.db
      .updateTable("notify_webhook_calls")
      .set({ due_at: nowMs, leased: 0 })
      .where("leased", "=", this.#options.leaseMark)
      .where("due_at", "is not", null)
      .execute();
  }

  /** Leases up to `max` due calls of a webhook until `leaseUntil`. */
  async claim(
    webhook: WebhookRow,
    nowMs: number,
    leaseUntil: number,
    max: number,
  ): Promise<DueCall[]> {
    const { database, leaseMark, secrets } = this.#options;
    const { db } = database;
    const rows = await db
      .selectFrom("notify_webhook_calls")
      .selectAll()
      .where("webhook_id", "=", webhook.id)
      .where("due_at", "<=", nowMs)
      .orderBy("due_at")
      .limit(max)
      .execute();
    const due: DueCall[] = [];
    for (const call of rows) {
      const { numUpdatedRows } = await db
        .updateTable("notify_webhook_calls")
        .set({ due_at: leaseUntil, leased: leaseMark })
        .where("id", "=", call.id)
        .where("due_at", "=", call.due_at)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) continue;
      const isDamaged = !isWhole(call.checksum, sumFields([call.id, call.type, call.payload]));
      if (isDamaged) database.reportDamage(`webhook call ${call.id} does not match its checksum`);
      due.push({
        isDamaged,
        call: { ...call, due_at: leaseUntil },
        url: webhook.url,
        secrets: secrets.list(webhook),
      });
    }
    return due;
  }

  /** Records the state of a call after an attempt. A replay in the meantime takes precedence. */
  async finish(
    { id, attempts, due_at }: WebhookCallRow,
    { status, detail, dueAt }: CallState,
  ): Promise<void> {
    await this.#options.database.db
      .updateTable("notify_webhook_calls")
      .set({ status, attempts: attempts + 1, detail, due_at: dueAt, leased: 0 })
      .where("id", "=", id)
      .where("due_at", "=", due_at)
      .execute();
  }

  /** Returns calls of a webhook, newest first; throws `not_found`. */
  async listCalls(
    id: string,
    limit: number,
    before: string | undefined,
  ): Promise<WebhookCallRow[]> {
    await this.#find(id);
    let query = this.#options.database.db
      .selectFrom("notify_webhook_calls")
      .selectAll()
      .where("webhook_id", "=", id);
    if (before !== undefined) query = query.where("id", "<", before);
    return query.orderBy("id", "desc").limit(limit).execute();
  }

  /** Makes a call due again, with the same id; throws `not_found`. */
  async replay(id: string, callId: string): Promise<void> {
    const { database, clock, onCalls } = this.#options;
    const { numUpdatedRows } = await database.db
      .updateTable("notify_webhook_calls")
      .set({ status: "pending", attempts: 0, due_at: clock.now(), leased: 0 })
      .where("id", "=", callId)
      .where("webhook_id", "=", id)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) throw missing();
    onCalls();
  }

  /** Deletes ended calls after a week, and the oldest pending ones above the maximum. */
  async sweep(): Promise<void> {
    const { database, clock } = this.#options;
    await database.db
      .deleteFrom("notify_webhook_calls")
      .where("created_at", "<=", clock.now() - RETENTION_MS)
      .execute();
    for (const { id } of await this.list()) {
      const excess = await database.db
        .selectFrom("notify_webhook_calls")
        .select("id")
        .where("webhook_id", "=", id)
        .orderBy("id", "desc")
        .offset(PENDING_MAX)
        .limit(1)
        .executeTakeFirst();
      if (excess === undefined) continue;
      await database.db
        .deleteFrom("notify_webhook_calls")
        .where("webhook_id", "=", id)
        .where("id", "<=", excess.id)
        .execute();
    }
  }

  async #find(id: string): Promise<WebhookRow> {
    const row = (await this.list()).find((webhook) => webhook.id === id);
    if (row === undefined) throw missing();
    return row;
  }

  #readKnown(): Promise<WebhookRow[]> {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#known === undefined || nowMs - this.#known.atMs > KNOWN_MS) {
      const rows = this.list();
      this.#known = { rows, atMs: nowMs };
      rows.catch(() => {
        this.#known = undefined;
      });
    }
    return this.#known.rows;
  }
}

function wants({ events }: WebhookRow, type: WebhookEventType): boolean {
  const chosen = JSON.parse(events) as string[];
  return chosen.length === 0 || chosen.includes(type);
}

function missing(): PlatformError {
  return new PlatformError("not_found", "There is no such webhook or call.");
}
