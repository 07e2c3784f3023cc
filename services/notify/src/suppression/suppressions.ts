// The suppression list: addresses that receive no mail.
import { sql, type Transaction } from "kysely";
import { toAddressKey } from "../address/mailbox.ts";
import type { Stream } from "../database/message.ts";
import type { NotifyDatabase, NotifyTables } from "../database/schema.ts";
import type { SuppressionReason, SuppressionRow } from "../database/suppression.ts";

/** A new entry. */
export interface NewSuppression {
  address: string;
  reason: SuppressionReason;
  detail?: string | undefined;
  messageId?: string | undefined;
}

/** Filter and position of a list. */
export interface SuppressionQuery {
  reason?: SuppressionReason | undefined;
  limit: number;
  after?: string | undefined;
}

const ROWS_MAX = 500;
// A stronger reason replaces a weaker one, never the other way round.
const STRENGTH: Readonly<Record<SuppressionReason, number>> = {
  unsubscribe: 0,
  manual: 1,
  hard_bounce: 2,
  complaint: 3,
};

/** The suppression list. Addresses are compared without regard to case. */
export class Suppressions {
  readonly #database: NotifyDatabase;

  constructor(database: NotifyDatabase) {
    this.#database = database;
  }

  /** Returns the entries that block these addresses for a stream, by canonical address. */
  async find(addresses: readonly string[], stream: Stream): Promise<Map<string, SuppressionRow>> {
    const rows = await this.#database.db
      .selectFrom("notify_suppressions")
      .selectAll()
      .where("address", "in", [...new Set(addresses.map(toAddressKey))])
      .execute();
    const blocking = rows.filter(
      ({ reason }) => reason !== "unsubscribe" || stream !== "transactional",
    );
    return new Map(blocking.map((row) => [row.address, row]));
  }

  /** Returns a page in the order of addresses. */
  async list({ reason, limit, after }: SuppressionQuery): Promise<SuppressionRow[]> {
    let query = this.#database.db.selectFrom("notify_suppressions").selectAll();
    if (reason !== undefined) query = query.where("reason", "=", reason);
    if (after !== undefined) query = query.where("address", ">", after);
    return query.orderBy("address").limit(limit).execute();
  }

  /** Returns an entry. */
  async get(address: string): Promise<SuppressionRow | undefined> {
    return this.#database.db
      .selectFrom("notify_suppressions")
      .selectAll()
      .where("address", "=", toAddressKey(address))
      .executeTakeFirst();
  }

  /** Adds entries. */
  async add(entries: readonly NewSuppression[], nowMs: number): Promise<void> {
    await this.#database.transaction((trx) => this.addIn(trx, entries, nowMs));
  }

  /** Adds entries in a transaction. An existing entry is replaced only by a stronger reason. */
  async addIn(
    trx: Transaction<NotifyTables>,
    entries: readonly NewSuppression[],
    nowMs: number,
  ): Promise<void> {
    const rows = new Map<string, SuppressionRow>();
    for (const { address, reason, detail, messageId } of entries) {
      const key = toAddressKey(address);
      const known = rows.get(key);
      if (known !== undefined && STRENGTH[known.reason] >= STRENGTH[reason]) continue;
      const row = { address: key, reason, detail: detail ?? null, message_id: messageId ?? null };
      rows.set(key, { ...row, suppressed_at: nowMs, unsubscribed_at: null });
    }
    for (const entry of entries) {
      if (entry.reason === "unsubscribe") await this.unsubscribeIn(trx, entry, nowMs);
    }
    const all = [...rows.values()];
    for (let at = 0; at < all.length; at += ROWS_MAX) {
      await trx
        .insertInto("notify_suppressions")
        .values(all.slice(at, at + ROWS_MAX))
        .onConflict((conflict) =>
          conflict
            .column("address")
            .doUpdateSet((eb) => ({
              reason: eb.ref("excluded.reason"),
              detail: eb.ref("excluded.detail"),
              message_id: eb.ref("excluded.message_id"),
              suppressed_at: eb.ref("excluded.suppressed_at"),
            }))
            .where(
              sql<boolean>`${rankOf("excluded.reason")} > ${rankOf("notify_suppressions.reason")}`,
            ),
        )
        .execute();
    }
  }

  /** Unsubscribes an address from bulk mail in a transaction; false if it had unsubscribed before. */
  async unsubscribeIn(
    trx: Transaction<NotifyTables>,
    { address, messageId }: Pick<NewSuppression, "address" | "messageId">,
    nowMs: number,
  ): Promise<boolean> {
    const row = {
      address: toAddressKey(address),
      reason: "unsubscribe" as const,
      detail: null,
      message_id: messageId ?? null,
      suppressed_at: nowMs,
      unsubscribed_at: nowMs,
    };
    const changed = await trx
      .insertInto("notify_suppressions")
      .values(row)
      .onConflict((conflict) =>
        conflict
          .column("address")
          .doUpdateSet({ unsubscribed_at: nowMs })
          .where("notify_suppressions.unsubscribed_at", "is", null),
      )
      .returning("address")
      .execute();
    return changed.length > 0;
  }

  /**
   * Removes an entry; false if there was none. An address that also unsubscribed keeps that entry: removing a bounce does
   * not subscribe it again. A second removal deletes it.
   */
  async remove(address: string): Promise<boolean> {
    const key = toAddressKey(address);
    const { numUpdatedRows } = await this.#database.db
      .updateTable("notify_suppressions")
      .set((eb) => ({
        reason: "unsubscribe" as const,
        detail: null,
        suppressed_at: eb.fn.coalesce("unsubscribed_at", "suppressed_at"),
      }))
      .where("address", "=", key)
      .where("reason", "!=", "unsubscribe")
      .where("unsubscribed_at", "is not", null)
      .executeTakeFirst();
    if (numUpdatedRows > 0n) return true;
    const { numDeletedRows } = await this.#database.db
      .deleteFrom("notify_suppressions")
      .where("address", "=", key)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }
}

function rankOf(column: string) {
  const cases = Object.entries(STRENGTH).map(
    ([reason, strength]) => sql`when ${sql.lit(reason)} then ${sql.lit(strength)}`,
  );
  return sql`case ${sql.ref(column)} ${sql.join(cases, sql` `)} end`;
}
