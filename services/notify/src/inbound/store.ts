// Received messages in the database.
import type { Clock } from "@platform/kernel/time";
import type { TraceContext } from "@platform/kernel/trace";
import { requireWhole, sumFields } from "../database/checksum.ts";
import type { InboundForwardRow, InboundKind, InboundRow } from "../database/inbound.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import { splitContents, splitRows } from "../database/split-rows.ts";
import { toTraceColumns } from "../database/trace.ts";
import { GroupCommit } from "../queue/group-commit.ts";

/** A message to store. */
export interface NewInbound {
  row: InboundRow;
  /** Undefined for rejected messages. */
  content: Uint8Array | undefined;
  /** Matched recipients by rule. */
  forwards: ReadonlyMap<string, readonly string[]>;
  /** Trace of the reception, which forwards continue. */
  trace: TraceContext;
}

/** Options of {@link InboundStore}. */
export interface InboundStoreOptions {
  database: NotifyDatabase;
  /** See `claimMark`. */
  leaseMark: number;
  clock: Clock;
  /** Contents are deleted after this time. */
  retentionMs: number;
}

/** Rows without contents are kept for the monthly DMARC figures of three months. */
const ROW_RETENTION_MS = 93 * 86_400_000;
const GROUP_MAX = 16;
const TRANSACTIONS_MAX = 2;

/** Received messages. */
export class InboundStore {
  readonly #options: InboundStoreOptions;
  readonly #inserts: GroupCommit<NewInbound, void>;

  constructor(options: InboundStoreOptions) {
    this.#options = options;
    this.#inserts = new GroupCommit({
      itemsMax: GROUP_MAX,
      transactionsMax: TRANSACTIONS_MAX,
      write: (items) => this.#insert(items),
    });
  }

  /** Stores a message with its forwards; resolves when it is durable. */
  insert(item: NewInbound): Promise<void> {
    return this.#inserts.add(item);
  }

  /** Returns a page, newest first. */
  async list(
    filter: { kind?: InboundKind | undefined; status?: InboundRow["status"] | undefined },
    limit: number,
    before: string | undefined,
  ): Promise<InboundRow[]> {
    let query = this.#options.database.db.selectFrom("notify_inbound").selectAll();
    if (filter.kind !== undefined) query = query.where("kind", "=", filter.kind);
    if (filter.status !== undefined) query = query.where("status", "=", filter.status);
    if (before !== undefined) query = query.where("id", "<", before);
    return query.orderBy("id", "desc").limit(limit).execute();
  }

  /** Returns a message. */
  async get(id: string): Promise<InboundRow | undefined> {
    return this.#options.database.db
      .selectFrom("notify_inbound")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
  }

  /** Returns the content of a message; undefined after it expired. Throws `internal` if it is damaged. */
  async readContent(id: string): Promise<Buffer | undefined> {
    const row = await this.#options.database.db
      .selectFrom("notify_inbound_bodies")
      .select(["content", "checksum"])
      .where("inbound_id", "=", id)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const { database } = this.#options;
    requireWhole(database, `received message ${id}`, row.checksum, sumFields([id, row.content]));
    return toBuffer(row.content);
  }

  /** Returns the forwards of a message. */
  async listForwards(id: string): Promise<InboundForwardRow[]> {
    return this.#options.database.db
      .selectFrom("notify_inbound_forwards")
      .selectAll()
      .where("inbound_id", "=", id)
      .orderBy("rule_id")
      .execute();
  }

  /** Makes the forwards of a message due, also those that have ended, and releases it from quarantine. */
  async forwardAgain(id: string): Promise<number> {
    const { database, clock } = this.#options;
    const nowMs = clock.now();
    return database.transaction(async (trx) => {
      await trx
        .updateTable("notify_inbound")
        .set({ status: "accepted" })
        .where("id", "=", id)
        .where("status", "=", "quarantined")
        .execute();
      const { numUpdatedRows } = await trx
        .updateTable("notify_inbound_forwards")
        .set((eb) => ({
          status: "pending",
          attempts: 0,
          due_at: nowMs,
          leased: 0,
          fence: eb("fence", "+", 1),
          updated_at: nowMs,
        }))
        .where("inbound_id", "=", id)
        .executeTakeFirst();
      return Number(numUpdatedRows);
    });
  }

  /** Makes the leases of this process's predecessor due. Only before the first lease. */
  async releaseOwn(): Promise<void> {
    const { database, leaseMark, clock } = this.#options;
    await database.db
      .updateTable("notify_inbound_forwards")
      .set({ due_at: clock.now(), leased: 0 })
      .where("leased", "=", leaseMark)
      .where("due_at", "is not", null)
      .execute();
  }

  /** Returns up to `max` messages whose reports have not been read, oldest first. */
  async listUnread(max: number): Promise<InboundRow[]> {
    return this.#options.database.db
      .selectFrom("notify_inbound")
      .selectAll()
      .where("unread", "=", 1)
      .orderBy("id")
      .limit(max)
      .execute();
  }

  /** Notes that the report of a message was read. */
  async setRead(id: string): Promise<void> {
    await this.#options.database.db
      .updateTable("notify_inbound")
      .set({ unread: 0 })
      .where("id", "=", id)
      .execute();
  }

  /** Deletes expired contents and rows. */
  async sweep(): Promise<void> {
    const { database, clock } = this.#options;
    const nowMs = clock.now();
    await database.transaction(async (trx) => {
      await trx.deleteFrom("notify_inbound_bodies").where("expires_at", "<=", nowMs).execute();
      const expired = trx
        .selectFrom("notify_inbound")
        .select("id")
        .where("received_at", "<=", nowMs - ROW_RETENTION_MS);
      await trx.deleteFrom("notify_inbound_forwards").where("inbound_id", "in", expired).execute();
      await trx
        .deleteFrom("notify_inbound")
        .where("received_at", "<=", nowMs - ROW_RETENTION_MS)
        .execute();
    });
  }

  async #insert(items: readonly NewInbound[]): Promise<void[]> {
    const { database, retentionMs } = this.#options;
    const bodies = items.flatMap(({ row, content }) =>
      content === undefined
        ? []
        : [
            {
              inbound_id: row.id,
              content,
              expires_at: row.received_at + retentionMs,
              checksum: sumFields([row.id, content]),
            },
          ],
    );
    const forwards = items.flatMap(listForwardRows);
    await database.transaction(async (trx) => {
      for (const rows of splitRows(items.map(({ row }) => row))) {
        await trx.insertInto("notify_inbound").values(rows).execute();
      }
      for (const rows of splitContents(database.kind, bodies)) {
        await trx.insertInto("notify_inbound_bodies").values(rows).execute();
      }
      for (const rows of splitRows(forwards)) {
        await trx.insertInto("notify_inbound_forwards").values(rows).execute();
      }
    });
    return items.map(() => undefined);
  }
}

function listForwardRows({ row, forwards, trace }: NewInbound): InboundForwardRow[] {
  return [...forwards].map(([ruleId, recipients]) => ({
    inbound_id: row.id,
    rule_id: ruleId,
    recipients: JSON.stringify(recipients),
    status: "pending",
    attempts: 0,
    fence: 0,
    due_at: row.status === "quarantined" ? null : row.received_at,
    leased: 0,
    detail: null,
    updated_at: row.received_at,
    ...toTraceColumns(trace),
  }));
}

function toBuffer(content: Uint8Array): Buffer {
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
}
