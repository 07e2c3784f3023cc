// The durable queue: messages, contents, deliveries and their leases, on SQLite or PostgreSQL.
import { sql, type Transaction } from "kysely";
import type { Clock } from "@platform/kernel/time";
import { isWhole, sumBody, sumDelivery } from "../database/checksum.ts";
import type { BodyRow, DeliveryRow, IdempotencyRow, MessageRow } from "../database/message.ts";
import { SINGLE_MARK } from "../database/lease-mark.ts";
import type { NotifyDatabase, NotifyTables } from "../database/schema.ts";
import { splitContents, splitRows } from "../database/split-rows.ts";
import {
  RETRY_CLASS,
  type Delivery,
  type DeliveryResult,
  type LoadedMessage,
  type QueueClass,
} from "../delivery.ts";
import { GroupCommit } from "./group-commit.ts";
import { recordResults } from "./result-rows.ts";

/** A delivery to store. */
export type NewDelivery = Omit<DeliveryRow, "checksum">;

/** A message to store. */
export interface NewMessage {
  message: MessageRow;
  body: Omit<BodyRow, "checksum">;
  deliveries: readonly NewDelivery[];
  idempotency: IdempotencyRow | undefined;
  events: readonly NotifyTables["notify_events"][];
}

/** Options of {@link QueueStore}. */
export interface QueueStoreOptions {
  database: NotifyDatabase;
  /** See `claimMark`. */
  leaseMark: number;
  clock: Clock;
  /** Adds the rows that other parts keep of a result, in its transaction. */
  onResults: (trx: Transaction<NotifyTables>, results: readonly DeliveryResult[]) => Promise<void>;
}

/** A lane of the queue: deliveries of a client to a domain. */
export interface LaneKey {
  client: string;
  domain: string;
}

/** A request for due deliveries. */
export interface ClaimRequest {
  queueClass: QueueClass;
  /** The lane that was visited last. */
  after: LaneKey;
  nowMs: number;
  leaseUntil: number;
  /** Number of deliveries of a lane that the caller takes. */
  roomOf: (lane: LaneKey) => number;
}

interface StoredMessage {
  message: LoadedMessage;
  isDamaged: boolean;
}

/** Before the first lane. */
export const FIRST_LANE: LaneKey = { client: "", domain: "" };

const LANES_MAX = 64;
const CLAIM_MAX = 250;
const GROUP_MAX = 64;
const TRANSACTIONS_MAX = 2;

/** The durable queue. */
export class QueueStore {
  readonly #database: NotifyDatabase;
  readonly #clock: Clock;
  /** Value of `leased` in rows that this process leases. */
  readonly leaseMark: number;
  readonly #onResults: QueueStoreOptions["onResults"];
  readonly #inserts: GroupCommit<NewMessage, void>;
  readonly #results: GroupCommit<DeliveryResult, boolean>;

  constructor({ database, clock, leaseMark, onResults }: QueueStoreOptions) {
    this.#database = database;
    this.leaseMark = leaseMark;
    this.#clock = clock;
    this.#onResults = onResults;
    const bounds = { itemsMax: GROUP_MAX, transactionsMax: TRANSACTIONS_MAX };
    this.#inserts = new GroupCommit({ ...bounds, write: (items) => this.#insert(items) });
    this.#results = new GroupCommit({ ...bounds, write: (items) => this.#record(items) });
  }

  /** Number of messages and results that wait to be written. */
  get waiting(): number {
    return this.#inserts.size + this.#results.size;
  }

  /** Stores a message; resolves when it is durable. Rejects with a unique violation if its idempotency key is used. */
  insert(item: NewMessage): Promise<void> {
    return this.#inserts.add(item);
  }

  /** Records the result of an attempt; false if the lease was lost, that is, another attempt followed. */
  record(result: DeliveryResult): Promise<boolean> {
    return this.#results.add(result);
  }

  /** Number of deliveries that have not ended. */
  async countOpen(): Promise<number> {
    const { count } = await this.#database.db
      .selectFrom("notify_deliveries")
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .where("due_at", "is not", null)
      .executeTakeFirstOrThrow();
    return count;
  }

  /** Of those, the ones that have failed and are tried again. */
  async countRetrying(): Promise<number> {
    const { count } = await this.#database.db
      .selectFrom("notify_deliveries")
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .where("due_at", "is not", null)
      .where("class", "=", RETRY_CLASS)
      .executeTakeFirstOrThrow();
    return count;
  }

  /**
   * Makes deliveries due whose time was set by a clock that was ahead: retries later than `latestMs`, and others later than
   * now unless their message is scheduled. Leases stay: behind one, the mail may be on its way.
   */
  async moveUp(nowMs: number, latestMs: number): Promise<void> {
    await this.#database.db
      .updateTable("notify_deliveries")
      .set({ due_at: nowMs })
      .where("due_at", ">", nowMs)
      .where("leased", "=", 0)
      .where((eb) => {
        const scheduled = eb
          .selectFrom("notify_messages")
          .select("id")
          .whereRef("id", "=", "notify_deliveries.message_id")
          .where("send_at", ">", nowMs);
        const isRetry = eb("class", "=", RETRY_CLASS);
        return eb.or([
          eb.and([isRetry, eb("due_at", ">", latestMs)]),
          eb.and([eb.not(isRetry), eb.not(eb.exists(scheduled))]),
        ]);
      })
      .execute();
  }

  /** Extends leases. Those that were lost meanwhile stay lost. */
  async renew(deliveries: readonly Delivery[], leaseUntil: number): Promise<void> {
    await this.#changeLeases(deliveries, () => ({ due_at: leaseUntil }));
  }

  /** Makes the leases of this process's predecessor due. Only before the first lease. */
  async releaseOwn(nowMs: number): Promise<void> {
    await this.#database.db
      .updateTable("notify_deliveries")
      .set({ due_at: nowMs })
      .where("leased", "=", this.leaseMark)
      .where("due_at", "is not", null)
      .execute();
  }

  /**
   * Leases due deliveries of the next lanes after `after`, in one transaction. `roomOf` returns the maximum for a lane; the
   * result names the last lane that was visited, or the start if there are no more.
   */
  async claim(request: ClaimRequest): Promise<{ deliveries: Delivery[]; last: LaneKey }> {
    const { queueClass, after, nowMs, leaseUntil, roomOf } = request;
    return this.#database.transaction(async (trx) => {
      const lanes = await listLanes(trx, queueClass, after);
      const lease = { leased: this.leaseMark, due_at: leaseUntil };
      const leased: DeliveryRow[] = [];
      for (const lane of lanes) {
        const room = Math.min(roomOf(lane), Math.ceil(CLAIM_MAX / lanes.length));
        if (room <= 0) continue;
        const rows = await listDue(trx, queueClass, lane, nowMs, room);
        leased.push(...(await leaseRows(trx, rows, nowMs, lease)));
      }
      const messages = await loadMessages(trx, [...new Set(leased.map((row) => row.message_id))]);
      const deliveries = leased.flatMap((row): Delivery[] => {
        const found = messages.get(row.message_id);
        if (found === undefined) return [];
        const damage = findDamage(row, found);
        if (damage !== undefined) this.#database.reportDamage(damage);
        const delivery = toDelivery(row, found.message, leaseUntil);
        return [damage === undefined ? delivery : { ...delivery, damage }];
      });
      return { deliveries, last: lanes.length < LANES_MAX ? FIRST_LANE : lanes.at(-1)! };
    });
  }

  /** Gives leases back; the deliveries are due at `dueAt`. */
  async release(deliveries: readonly Delivery[], dueAt: number): Promise<void> {
    await this.#changeLeases(deliveries, ({ mayBeDuplicate }) => ({
      leased: mayBeDuplicate ? SINGLE_MARK : 0,
      due_at: dueAt,
    }));
  }

  async #changeLeases(
    deliveries: readonly Delivery[],
    change: (delivery: Delivery) => Partial<Pick<DeliveryRow, "leased" | "due_at">>,
  ): Promise<void> {
    if (deliveries.length === 0) return;
    await this.#database.transaction(async (trx) => {
      for (const delivery of deliveries) {
        await trx
          .updateTable("notify_deliveries")
          .set(change(delivery))
          .where("message_id", "=", delivery.message.id)
          .where("position", "=", delivery.position)
          .where("fence", "=", delivery.fence)
          .where("due_at", "is not", null)
          .execute();
      }
    });
  }

  async #insert(items: readonly NewMessage[]): Promise<void[]> {
    await this.#database.transaction(async (trx) => {
      const idempotency = items.flatMap((item) => item.idempotency ?? []);
      for (const rows of splitRows(idempotency)) {
        await trx.insertInto("notify_idempotency").values(rows).execute();
      }
      for (const rows of splitRows(items.map(({ message }) => message))) {
        await trx.insertInto("notify_messages").values(rows).execute();
      }
      for (const rows of splitContents(
        this.#database.kind,
        items.map(({ message, body }) => ({ ...body, checksum: sumBody(message, body) })),
      )) {
        await trx.insertInto("notify_bodies").values(rows).execute();
      }
      const deliveries = items.flatMap((item) => item.deliveries);
      const summed = deliveries.map((row) => ({ ...row, checksum: sumDelivery(row) }));
      for (const rows of splitRows(summed)) {
        await trx.insertInto("notify_deliveries").values(rows).execute();
      }
      for (const rows of splitRows(items.flatMap((item) => item.events))) {
        await trx.insertInto("notify_events").values(rows).execute();
      }
    });
    return items.map(() => undefined);
  }

  async #record(results: readonly DeliveryResult[]): Promise<boolean[]> {
    return this.#database.transaction(async (trx) => {
      const recorded = await recordResults(trx, results, this.#clock.now());
      await this.#onResults(
        trx,
        results.filter((_, index) => recorded[index]),
      );
      return recorded;
    });
  }
}

/** Converts a row and its content to the form in memory. */
export function toLoadedMessage(row: MessageRow, content: Uint8Array): LoadedMessage {
  return {
    id: row.id,
    channel: row.channel,
    client: row.client,
    stream: row.stream,
    template: row.template,
    sender: row.sender,
    subject: row.subject,
    isSensitive: row.sensitive === 1,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    traceId: row.trace_id,
    trace: { traceparent: row.traceparent, tracestate: row.tracestate },
    tags: row.tags,
    metadata: row.metadata,
    content: Buffer.from(content.buffer, content.byteOffset, content.byteLength),
  };
}

/** Converts a leased row to the form in memory. `row.leased` is its state before the lease. */
export function toDelivery(row: NewDelivery, message: LoadedMessage, leaseUntil: number): Delivery {
  return {
    message,
    position: row.position,
    address: row.address,
    domain: row.domain,
    queueClass: row.class as QueueClass,
    attempts: row.attempts,
    fence: row.fence,
    leaseUntil,
    mayBeDuplicate: row.leased !== 0,
  };
}

async function listLanes(
  trx: Transaction<NotifyTables>,
  queueClass: QueueClass,
  { client, domain }: LaneKey,
): Promise<LaneKey[]> {
  return trx
    .selectFrom("notify_deliveries")
    .select(["client", "domain"])
    .distinct()
    .where("class", "=", queueClass)
    .where("due_at", "is not", null)
    .where(sql<boolean>`(client, domain) > (${client}, ${domain})`)
    .orderBy("client")
    .orderBy("domain")
    .limit(LANES_MAX)
    .execute();
}

async function listDue(
  trx: Transaction<NotifyTables>,
  queueClass: QueueClass,
  { client, domain }: LaneKey,
  nowMs: number,
  max: number,
): Promise<DeliveryRow[]> {
  return trx
    .selectFrom("notify_deliveries")
    .selectAll()
    .where("class", "=", queueClass)
    .where("client", "=", client)
    .where("domain", "=", domain)
    .where("due_at", "<=", nowMs)
    .orderBy("due_at")
    .limit(max)
    .execute();
}

// Another node may have leased a row meanwhile: its fence differs then.
async function leaseRows(
  trx: Transaction<NotifyTables>,
  rows: readonly DeliveryRow[],
  nowMs: number,
  lease: Pick<DeliveryRow, "leased" | "due_at">,
): Promise<DeliveryRow[]> {
  const leased: DeliveryRow[] = [];
  for (const row of rows) {
    const { numUpdatedRows } = await trx
      .updateTable("notify_deliveries")
      .set({ ...lease, fence: row.fence + 1 })
      .where("message_id", "=", row.message_id)
      .where("position", "=", row.position)
      .where("fence", "=", row.fence)
      .where("due_at", "<=", nowMs)
      .executeTakeFirst();
    if (numUpdatedRows === 1n) leased.push({ ...row, fence: row.fence + 1 });
  }
  return leased;
}

async function loadMessages(
  trx: Transaction<NotifyTables>,
  ids: readonly string[],
): Promise<Map<string, StoredMessage>> {
  if (ids.length === 0) return new Map();
  const rows = await trx
    .selectFrom("notify_messages")
    .innerJoin("notify_bodies", "notify_bodies.message_id", "notify_messages.id")
    .selectAll("notify_messages")
    .select(["content", "variables", "checksum"])
    .where("id", "in", ids)
    .execute();
  return new Map(
    rows.map((row) => {
      const isDamaged = !isWhole(row.checksum, sumBody(row, row));
      return [row.id, { message: toLoadedMessage(row, row.content), isDamaged }];
    }),
  );
}

function findDamage(row: DeliveryRow, { isDamaged }: StoredMessage): string | undefined {
  if (isDamaged) return `the content of message ${row.message_id} does not match its checksum`;
  if (isWhole(row.checksum, sumDelivery(row))) return undefined;
  return `recipient ${row.position} of message ${row.message_id} does not match its checksum`;
}
