// Throttling of failed attempts: a number of them is free, then the delay doubles from 1 s to 15 min.
import { createRetryLaterError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import { sql } from "kysely";
import type { AuthDatabase } from "../database/schema.ts";

const DELAY_MS_MAX = 900_000;
/** Failures are forgotten after this time without another one. */
const MEMORY_MS = 86_400_000;
/** Failures beyond the free ones after which the delay is at its maximum. */
const DOUBLINGS_MAX = 10;

/** The key that attempts are counted by, and the number of failures without a delay. */
export interface ThrottleKey {
  key: string;
  free: number;
}

/** A number of admissions within a window that starts with the first. */
export interface Allowance {
  key: string;
  max: number;
  windowMs: number;
}

/** An attempt, counted as failed until `succeed` is called. */
export interface Attempt {
  /** Clears the count of the owner's key and takes this attempt back from the others. */
  succeed(): Promise<void>;
}

/** Counts attempts in the database, for all nodes together. */
export class Throttle {
  readonly #database: AuthDatabase;
  readonly #clock: Clock;

  constructor(database: AuthDatabase, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /**
   * Counts an attempt before it is checked, so that concurrent attempts count as well. Throws 429 with Retry-After
   * while one of the keys has to wait. `owner` is the key that a success clears.
   */
  async begin(owner: ThrottleKey, others: readonly ThrottleKey[]): Promise<Attempt> {
    const items = [owner, ...others];
    // Concurrently, so that SQLite syncs once for all of them.
    const waitsMs = await Promise.all(items.map((item) => this.#count(item)));
    const waitMs = Math.max(...waitsMs);
    if (waitMs > 0) {
      const counted = items.filter((_, index) => waitsMs[index] === 0);
      await Promise.all(counted.map(({ key }) => this.#refund(key)));
      throw createRetryLaterError(
        "too_many_requests",
        "Too many failed attempts: try again later.",
        waitMs / 1000,
      );
    }
    return {
      succeed: async () => {
        await Promise.all([
          this.#database.db.deleteFrom("auth_throttles").where("key", "=", owner.key).execute(),
          ...others.map(({ key }) => this.#refund(key)),
        ]);
      },
    };
  }

  /**
   * Counts an operation that is limited whether it succeeds or not. Throws 429 with Retry-After until the window ends
   * if one of the allowances is used up.
   */
  async admit(allowances: readonly Allowance[], detail: string): Promise<void> {
    for (const { key, max, windowMs } of allowances) {
      const now = this.#clock.now();
      const isOver = sql<boolean>`auth_throttles.blocked_until <= ${now}`;
      const { failures, blocked_until: endsAt } = await this.#database.db
        .insertInto("auth_throttles")
        .values({ key, failures: 1, blocked_until: now + windowMs, updated_at: now })
        .onConflict((conflict) =>
          conflict.column("key").doUpdateSet({
            failures: sql<number>`case when ${isOver} then 1 else auth_throttles.failures + 1 end`,
            blocked_until: sql<number>`case when ${isOver} then cast(${now + windowMs} as bigint) else auth_throttles.blocked_until end`,
            updated_at: now,
          }),
        )
        .returning(["failures", "blocked_until"])
        .executeTakeFirstOrThrow();
      if (failures > max) {
        throw createRetryLaterError("too_many_requests", detail, (endsAt - now) / 1000);
      }
    }
  }

  /** Forgets the attempts counted by a key. */
  async clear(key: string): Promise<void> {
    await this.#database.db.deleteFrom("auth_throttles").where("key", "=", key).execute();
  }

  /** Deletes failures that are already forgotten. */
  async sweep(): Promise<void> {
    await this.#database.db
      .deleteFrom("auth_throttles")
      .where("updated_at", "<", this.#clock.now() - MEMORY_MS)
      .execute();
  }

  // Returns the remaining wait in ms; 0 if the attempt was counted.
  async #count({ key, free }: ThrottleKey): Promise<number> {
    const { db } = this.#database;
    const now = this.#clock.now();
    // The statement's text is constant, so that it is prepared once.
    const failures = sql<number>`case when auth_throttles.updated_at < ${now - MEMORY_MS} then 1 else auth_throttles.failures + 1 end`;
    const doublings = sql<number>`cast((${failures}) - ${free} as integer)`;
    const delayMs = sql<number>`case when ${doublings} < ${DOUBLINGS_MAX} then 1000 * (1 << ${doublings}) else ${sql.lit(DELAY_MS_MAX)} end`;
    const counted = await db
      .insertInto("auth_throttles")
      .values({ key, failures: 1, blocked_until: 0, updated_at: now })
      .onConflict((conflict) =>
        conflict
          .column("key")
          .doUpdateSet({
            failures,
            // 0 rather than now without a delay: a concurrent attempt may have read the clock earlier.
            blocked_until: sql<number>`case when ${doublings} < 0 then 0 else cast(${now} as bigint) + ${delayMs} end`,
            updated_at: now,
          })
          .where("auth_throttles.blocked_until", "<=", now),
      )
      .returning("failures")
      .executeTakeFirst();
    if (counted !== undefined) return 0;
    const row = await db
      .selectFrom("auth_throttles")
      .select("blocked_until")
      .where("key", "=", key)
      .executeTakeFirst();
    return Math.max(1, (row?.blocked_until ?? 0) - now);
  }

  async #refund(key: string): Promise<void> {
    await this.#database.db
      .updateTable("auth_throttles")
      .set((value) => ({ failures: value("failures", "-", 1), blocked_until: 0 }))
      .where("key", "=", key)
      .where("failures", ">", 0)
      .execute();
  }
}
