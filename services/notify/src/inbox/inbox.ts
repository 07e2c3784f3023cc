// The development inbox: keeps messages that no relay delivers, so that they can be read over the API.
import { sql, type Transaction } from "kysely";
import type { Clock } from "@platform/kernel/time";
import { requireWhole, sumFields } from "../database/checksum.ts";
import type { InboxRow } from "../database/inbox.ts";
import type { NotifyDatabase, NotifyTables } from "../database/schema.ts";
import type { Delivery, Outcome, Transport } from "../delivery.ts";

/** Options of {@link Inbox}. */
export interface InboxOptions {
  database: NotifyDatabase;
  clock: Clock;
  /** Maximum number of messages; the oldest are deleted. */
  messagesMax: number;
  /** Messages are deleted after this time. */
  retentionMs: number;
  /** Returns the fields that a delivery has in front of its content. The inbox shows those of the first recipient. */
  fieldsOf: (delivery: Delivery) => string;
}

/** A message in the inbox without its content. */
export type InboxItem = Omit<InboxRow, "content" | "checksum">;

/** An item of a list, with the template of its message. */
export type ListedItem = InboxItem & { template: string | null };

const SENSITIVE_RETENTION_MS = 24 * 3_600_000;
const ITEM_COLUMNS = [
  "notify_inbox.id",
  "notify_inbox.message_id",
  "notify_inbox.channel",
  "notify_inbox.sender",
  "notify_inbox.recipients",
  "notify_inbox.subject",
  "notify_inbox.size_bytes",
  "notify_inbox.received_at",
  "notify_inbox.expires_at",
] as const;

/** The inbox. */
export class Inbox implements Transport {
  readonly #options: InboxOptions;

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  destinationOf(): string {
    return "inbox";
  }

  /** Stores the message, or adds the recipient to it. */
  async deliver(delivery: Delivery): Promise<Outcome> {
    const { database } = this.#options;
    try {
      await database.transaction((trx) => this.#store(trx, delivery));
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      const reply = { relay: "inbox", text };
      return { kind: "deferred", cause: "relay", reply, mayHaveArrived: false };
    }
    const reply = { relay: "inbox", code: 250, text: "kept in the development inbox" };
    return { kind: "sent", reply };
  }

  /** Returns messages, newest first; with `text`, those whose subject or addresses contain it in either case. */
  async list(limit: number, before: number | undefined, text = ""): Promise<ListedItem[]> {
    let query = this.#options.database.db
      .selectFrom("notify_inbox")
      .leftJoin("notify_messages", "notify_messages.id", "notify_inbox.message_id")
      .select(ITEM_COLUMNS)
      .select("notify_messages.template");
    if (text !== "") {
      const pattern = `%${text.toLowerCase().replaceAll(/[%_\\]/g, "\\$&")}%`;
      query = query.where(
        sql<boolean>`lower(notify_inbox.subject || ' ' || recipients || ' ' || notify_inbox.sender) like ${pattern} escape '\\'`,
      );
    }
    if (before !== undefined) query = query.where("notify_inbox.id", "<", before);
    const rows = await query.orderBy("notify_inbox.id", "desc").limit(limit).execute();
    return rows as ListedItem[];
  }

  /** Returns a message with its content. Throws `internal` if it is damaged. */
  async read(messageId: string): Promise<InboxRow | undefined> {
    const { database } = this.#options;
    const row = await database.db
      .selectFrom("notify_inbox")
      .selectAll()
      .where("message_id", "=", messageId)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    requireWhole(database, `message ${messageId} in the inbox`, row.checksum, sumItem(row));
    return row as InboxRow;
  }

  /** Deletes a message, or all without an id; returns their number. */
  async remove(messageId?: string): Promise<number> {
    let query = this.#options.database.db.deleteFrom("notify_inbox");
    if (messageId !== undefined) query = query.where("message_id", "=", messageId);
    const { numDeletedRows } = await query.executeTakeFirst();
    return Number(numDeletedRows);
  }

  /** Deletes expired messages and those beyond the maximum. */
  async sweep(): Promise<void> {
    const { database, clock, messagesMax } = this.#options;
    await database.db.deleteFrom("notify_inbox").where("expires_at", "<=", clock.now()).execute();
    const oldest = await database.db
      .selectFrom("notify_inbox")
      .select("id")
      .orderBy("id", "desc")
      .offset(messagesMax)
      .limit(1)
      .executeTakeFirst();
    if (oldest?.id === undefined) return;
    await database.db.deleteFrom("notify_inbox").where("id", "<=", oldest.id).execute();
  }

  // The upsert locks the row, so that concurrent deliveries of a message add their recipients one after another.
  async #store(trx: Transaction<NotifyTables>, delivery: Delivery): Promise<void> {
    const { message, address } = delivery;
    const { retentionMs, clock, fieldsOf } = this.#options;
    const nowMs = clock.now();
    const fields = Buffer.from(fieldsOf(delivery), "latin1");
    const content =
      fields.length === 0 ? message.content : Buffer.concat([fields, message.content]);
    const keptMs = message.isSensitive
      ? Math.min(SENSITIVE_RETENTION_MS, retentionMs)
      : retentionMs;
    const { recipients } = await trx
      .insertInto("notify_inbox")
      .values({
        message_id: message.id,
        channel: message.channel,
        sender: message.sender,
        recipients: JSON.stringify([address]),
        subject: message.subject,
        content,
        size_bytes: content.length,
        received_at: nowMs,
        expires_at: nowMs + keptMs,
        checksum: sumItem({
          message_id: message.id,
          sender: message.sender,
          subject: message.subject,
          content,
        }),
      })
      .onConflict((conflict) => conflict.column("message_id").doUpdateSet({ received_at: nowMs }))
      .returning("recipients")
      .executeTakeFirstOrThrow();
    const known = JSON.parse(recipients) as string[];
    if (known.includes(address)) return;
    await trx
      .updateTable("notify_inbox")
      .set({ recipients: JSON.stringify([...known, address]) })
      .where("message_id", "=", message.id)
      .execute();
  }
}

function sumItem(row: Pick<InboxRow, "message_id" | "sender" | "subject" | "content">): number {
  return sumFields([row.message_id, row.sender, row.subject, row.content]);
}
