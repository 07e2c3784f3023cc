// Reading, canceling and expiring stored messages.
import { z } from "zod";
import { sql } from "kysely";
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import { toAddressKey } from "../address/mailbox.ts";
import type { DeliveryRow, DeliveryStatus, MessageRow } from "../database/message.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import type { Dispatcher } from "../queue/dispatcher.ts";

/** Filter and position of a list; `client` limits it to the messages of one client. */
export interface MessageQuery {
  client: string | undefined;
  status?: DeliveryStatus | undefined;
  to?: string | undefined;
  template?: string | undefined;
  stream?: MessageRow["stream"] | undefined;
  tag?: string | undefined;
  limit: number;
  /** Only messages before this id, that is, older ones. */
  before?: string | undefined;
}

/** An event of a message. */
/** An event of a message, for the API. */
export const messageEvent = z.object({
  type: z.string(),
  at: z.string(),
  recipient: z.string().optional(),
  detail: z.string().optional(),
});

type MessageEvent = z.infer<typeof messageEvent>;

/** A message with its deliveries. */
export interface MessageDetail {
  message: MessageRow;
  deliveries: DeliveryRow[];
  events: MessageEvent[];
}

/** Options of {@link Messages}. */
export interface MessagesOptions {
  database: NotifyDatabase;
  dispatcher: Dispatcher;
  clock: Clock;
  /** Messages without open deliveries are deleted after this time. */
  retentionMs: number;
}

const SWEEP_ROWS = 500;

/** Stored messages. */
export class Messages {
  readonly #options: MessagesOptions;

  constructor(options: MessagesOptions) {
    this.#options = options;
  }

  /** Returns a page, newest first, with the deliveries of each message. */
  async list(query: MessageQuery): Promise<{ message: MessageRow; deliveries: DeliveryRow[] }[]> {
    const { db } = this.#options.database;
    let select = db.selectFrom("notify_messages").selectAll();
    if (query.client !== undefined) select = select.where("client", "=", query.client);
    if (query.template !== undefined) select = select.where("template", "=", query.template);
    if (query.stream !== undefined) select = select.where("stream", "=", query.stream);
    if (query.before !== undefined) select = select.where("id", "<", query.before);
    if (query.tag !== undefined) {
      // Tags are a JSON array of strings.
      const pattern = `%${JSON.stringify(query.tag).replaceAll(/[%_\\]/g, "\\$&")}%`;
      select = select.where(sql<boolean>`tags like ${pattern} escape '\\'`);
    }
    if (query.status !== undefined || query.to !== undefined) {
      select = select.where((eb) => {
        let one = eb
          .selectFrom("notify_deliveries")
          .select("position")
          .whereRef("notify_deliveries.message_id", "=", "notify_messages.id");
        if (query.status !== undefined)
          one = one.where("notify_deliveries.status", "=", query.status);
        if (query.to !== undefined) {
          one = one.where((inner) =>
            inner.or([
              inner("notify_deliveries.address", "=", query.to!),
              inner("notify_deliveries.address", "=", toAddressKey(query.to!)),
            ]),
          );
        }
        return eb.exists(one);
      });
    }
    const messages = await select.orderBy("id", "desc").limit(query.limit).execute();
    const deliveries = await this.#readDeliveries(messages.map(({ id }) => id));
    return messages.map((message) => ({ message, deliveries: deliveries.get(message.id) ?? [] }));
  }

  /** Returns a message with its events; throws `not_found`. */
  async get(id: string, client: string | undefined): Promise<MessageDetail> {
    const { db } = this.#options.database;
    const message = await this.#find(id, client);
    const deliveries = (await this.#readDeliveries([id])).get(id) ?? [];
    const rows = await db
      .selectFrom("notify_events")
      .select(["position", "type", "at", "detail"])
      .where("message_id", "=", id)
      .orderBy("id")
      .limit(1_000)
      .execute();
    return { message, deliveries, events: createEvents(message, deliveries, rows) };
  }

  /** Cancels the deliveries that have not started and returns their number; throws `not_found` or `conflict`. */
  async cancel(id: string, client: string | undefined): Promise<number> {
    const { database, dispatcher, clock } = this.#options;
    await this.#find(id, client);
    const withdrawn = dispatcher.withdraw(id);
    const nowMs = clock.now();
    const canceled = await database.transaction(async (trx) => {
      const open = await trx
        .selectFrom("notify_deliveries")
        .select(["position", "leased", "fence"])
        .where("message_id", "=", id)
        .where("due_at", "is not", null)
        .execute();
      // A leased delivery is in flight, unless it was just withdrawn.
      const free = open.filter(
        ({ position, leased }) =>
          leased === 0 || withdrawn.some((delivery) => delivery.position === position),
      );
      for (const { position, fence } of free) {
        await trx
          .updateTable("notify_deliveries")
          .set({ status: "canceled", due_at: null, leased: 0, updated_at: nowMs })
          .where("message_id", "=", id)
          .where("position", "=", position)
          .where("fence", "=", fence)
          .execute();
      }
      if (free.length > 0) {
        await trx
          .insertInto("notify_events")
          .values({ message_id: id, position: null, type: "canceled", at: nowMs, detail: null })
          .execute();
      }
      return free.length;
    });
    if (canceled > 0) return canceled;
    throw new PlatformError("conflict", "The message was delivered, or its delivery has started.");
  }

  /** Deletes expired contents, and expired messages with everything that belongs to them. */
  async sweep(): Promise<void> {
    const { database, clock, retentionMs } = this.#options;
    const nowMs = clock.now();
    const isOpen = sql<boolean>`exists (select 1 from notify_deliveries d where d.message_id = notify_bodies.message_id and d.due_at is not null)`;
    await database.db
      .deleteFrom("notify_bodies")
      .where("expires_at", "<=", nowMs)
      .where((eb) => eb.not(isOpen))
      .execute();
    for (;;) {
      const expired = await database.db
        .selectFrom("notify_messages")
        .select("id")
        .where("created_at", "<=", nowMs - retentionMs)
        .where(
          sql<boolean>`not exists (select 1 from notify_deliveries d where d.message_id = notify_messages.id and d.due_at is not null)`,
        )
        .orderBy("id")
        .limit(SWEEP_ROWS)
        .execute();
      if (expired.length === 0) return;
      const ids = expired.map(({ id }) => id);
      await database.transaction(async (trx) => {
        await trx.deleteFrom("notify_events").where("message_id", "in", ids).execute();
        await trx.deleteFrom("notify_deliveries").where("message_id", "in", ids).execute();
        await trx.deleteFrom("notify_bodies").where("message_id", "in", ids).execute();
        await trx.deleteFrom("notify_gateway_ids").where("message_id", "in", ids).execute();
        await trx.deleteFrom("notify_messages").where("id", "in", ids).execute();
      });
    }
  }

  async #find(id: string, client: string | undefined): Promise<MessageRow> {
    let query = this.#options.database.db
      .selectFrom("notify_messages")
      .selectAll()
      .where("id", "=", id);
    if (client !== undefined) query = query.where("client", "=", client);
    const row = await query.executeTakeFirst();
    if (row === undefined) throw new PlatformError("not_found", "There is no such message.");
    return row;
  }

  async #readDeliveries(ids: readonly string[]): Promise<Map<string, DeliveryRow[]>> {
    const found = new Map<string, DeliveryRow[]>();
    if (ids.length === 0) return found;
    const rows = await this.#options.database.db
      .selectFrom("notify_deliveries")
      .selectAll()
      .where("message_id", "in", ids)
      .orderBy("message_id")
      .orderBy("position")
      .execute();
    for (const row of rows) {
      const known = found.get(row.message_id);
      if (known === undefined) found.set(row.message_id, [row]);
      else known.push(row);
    }
    return found;
  }
}

/** Returns the status of a message: the most advanced one of its deliveries that matters to its sender. */
export function summarizeStatus(deliveries: readonly DeliveryRow[]): DeliveryStatus {
  const order: readonly DeliveryStatus[] = [
    "sent",
    "deferred",
    "queued",
    "bounced",
    "failed",
    "suppressed",
    "canceled",
  ];
  return order.find((status) => deliveries.some((one) => one.status === status)) ?? "queued";
}

// `queued` and `sent` follow from the rows; the table holds all others.
function createEvents(
  message: MessageRow,
  deliveries: readonly DeliveryRow[],
  rows: readonly { position: number | null; type: string; at: number; detail: string | null }[],
): MessageEvent[] {
  const addressOf = (position: number | null): string | undefined =>
    deliveries.find((one) => one.position === position)?.address;
  const events = [
    { type: "queued", atMs: message.created_at, recipient: undefined, detail: undefined },
    ...rows.map(({ position, type, at, detail }) => ({
      type,
      atMs: at,
      recipient: addressOf(position),
      detail: detail ?? undefined,
    })),
    ...deliveries
      .filter(({ status }) => status === "sent")
      .map(({ address, updated_at, relay, code, detail }) => ({
        type: "sent",
        atMs: updated_at,
        recipient: address,
        detail: [relay, code, detail].filter((part) => part !== null).join(" "),
      })),
  ];
  return events
    .toSorted((a, b) => a.atMs - b.atMs)
    .map(({ type, atMs, recipient, detail }) => ({
      type,
      at: new Date(atMs).toISOString(),
      ...(recipient === undefined ? {} : { recipient }),
      ...(detail === undefined ? {} : { detail }),
    }));
}
