// Subscriptions of browsers.
import { PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import type { PushSubscriptionRow } from "../database/push.ts";
import type { NotifyDatabase } from "../database/schema.ts";

/** Options of {@link PushSubscriptions}. */
export interface PushSubscriptionsOptions {
  database: NotifyDatabase;
  clock: Clock;
  ids: IdSource;
  /** Maximum number of subscriptions of a client, and in all. */
  clientMax: number;
  totalMax: number;
}

/** A subscription to store. */
export type NewPushSubscription = Omit<PushSubscriptionRow, "id" | "created_at">;

/** Browsers of a subscriber. */
const BROWSERS_MAX = 20;
/** A count of all subscriptions is used for this time: it reads the whole index. */
const COUNT_REUSE_MS = 1_000;

/** The subscriptions of the service. */
export class PushSubscriptions {
  readonly #options: PushSubscriptionsOptions;
  #total: { count: number; atMs: number } | undefined;

  constructor(options: PushSubscriptionsOptions) {
    this.#options = options;
  }

  /** Stores a subscription, or renews the one with this endpoint. Throws `conflict` beyond the maximum. */
  async add(subscription: NewPushSubscription): Promise<PushSubscriptionRow> {
    const { database, clock, ids } = this.#options;
    await this.#checkRoom(subscription);
    if (this.#total !== undefined) this.#total.count += 1;
    const row = { id: ids.uuid(), created_at: clock.now(), ...subscription };
    const { subscriber, p256dh, auth, expires_at } = subscription;
    return database.db
      .insertInto("notify_push_subscriptions")
      .values(row)
      .onConflict((conflict) =>
        conflict
          .columns(["client", "endpoint"])
          .doUpdateSet({ subscriber, p256dh, auth, expires_at }),
      )
      .returningAll()
      .executeTakeFirstOrThrow();
  }

  /** Returns the subscriptions of a subscriber, at most {@link BROWSERS_MAX}. */
  async find(client: string, subscriber: string): Promise<PushSubscriptionRow[]> {
    return this.#options.database.db
      .selectFrom("notify_push_subscriptions")
      .selectAll()
      .where("client", "=", client)
      .where("subscriber", "=", subscriber)
      .orderBy("id")
      .limit(BROWSERS_MAX)
      .execute();
  }

  /** Returns a page of a client, oldest first. */
  async list(
    client: string,
    subscriber: string | undefined,
    limit: number,
    after: string | undefined,
  ): Promise<PushSubscriptionRow[]> {
    let query = this.#options.database.db
      .selectFrom("notify_push_subscriptions")
      .selectAll()
      .where("client", "=", client);
    if (subscriber !== undefined) query = query.where("subscriber", "=", subscriber);
    if (after !== undefined) query = query.where("id", ">", after);
    return query.orderBy("id").limit(limit).execute();
  }

  async get(id: string): Promise<PushSubscriptionRow | undefined> {
    return this.#options.database.db
      .selectFrom("notify_push_subscriptions")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
  }

  /** Deletes a subscription, of a client or of any; false if there was none. */
  async remove(id: string, client?: string): Promise<boolean> {
    let query = this.#options.database.db
      .deleteFrom("notify_push_subscriptions")
      .where("id", "=", id);
    if (client !== undefined) query = query.where("client", "=", client);
    const { numDeletedRows } = await query.executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** Deletes expired subscriptions. */
  async sweep(): Promise<void> {
    const { database, clock } = this.#options;
    await database.db
      .deleteFrom("notify_push_subscriptions")
      .where("expires_at", "<=", clock.now())
      .execute();
  }

  // A subscription that is renewed takes no more room. Concurrent requests of several nodes may exceed a maximum by a few.
  async #checkRoom({ client, subscriber, endpoint }: NewPushSubscription): Promise<void> {
    const { database, clientMax, totalMax } = this.#options;
    const { known, own, count } = await database.db
      .selectFrom("notify_push_subscriptions")
      .select((eb) => [
        eb.fn.countAll<number>().as("count"),
        eb.fn.countAll<number>().filterWhere("endpoint", "=", endpoint).as("known"),
        eb.fn
          .countAll<number>()
          .filterWhere("subscriber", "=", subscriber)
          .filterWhere("endpoint", "!=", endpoint)
          .as("own"),
      ])
      .where("client", "=", client)
      .executeTakeFirstOrThrow();
    if (own >= BROWSERS_MAX) refuse(`The subscriber has ${BROWSERS_MAX} subscriptions`);
    if (known > 0) return;
    if (count >= clientMax) refuse(`The client has ${clientMax} subscriptions`);
    if ((await this.#countAll()) >= totalMax) refuse(`There are ${totalMax} subscriptions`);
  }

  async #countAll(): Promise<number> {
    const { database, clock, totalMax } = this.#options;
    const nowMs = clock.monotonicMs();
    const isFresh = this.#total !== undefined && nowMs - this.#total.atMs < COUNT_REUSE_MS;
    if (!isFresh || this.#total!.count >= totalMax) {
      const { count } = await database.db
        .selectFrom("notify_push_subscriptions")
        .select((eb) => eb.fn.countAll<number>().as("count"))
        .executeTakeFirstOrThrow();
      this.#total = { count, atMs: nowMs };
    }
    return this.#total!.count;
  }
}

function refuse(fact: string): never {
  throw new PlatformError("conflict", `${fact}, the maximum.`);
}
