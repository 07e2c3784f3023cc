// Failed attempts slow down whoever makes them: some are free, then the wait doubles from 1 s to 15 min.
import { createRetryLaterError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import { sql } from "kysely";
import type { AuthDatabase } from "../database/schema.ts";

const DELAY_MS_MAX = 900_000;
/** Failures are forgotten after this long without another. */
const MEMORY_MS = 86_400_000;
/** From this one on the wait is the longest. */
const DOUBLINGS_MAX = 10;

/** What attempts are counted by, and how many may fail for nothing. */
export interface ThrottleKey {
  key: string;
  free: number;
}

/** A number of admissions within a window that begins with the first. */
export interface Allowance {
  key: string;
  max: number;
  windowMs: number;
}

/** An attempt that has been counted as failed until it is known to be right. */
export interface Attempt {
  /** It was right: the account's count begins anew, the address gets its attempt back. */
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
   * Counts an attempt before it is checked, so that attempts at the same moment are counted as well. Throws 429 with
   * Retry-After while one of the keys has to wait. `owner` is the key that a success clears.
   */
  async begin(owner: ThrottleKey, others: readonly ThrottleKey[]): Promise<Attempt> {
    const items = [owner, ...others];
    // At the same time, so that SQLite syncs once for all of them.
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
   * Counts something that is allowed a number of times, right or wrong. Throws 429 with Retry-After where one of the
   * allowances is used up, until its window ends.
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

  /** Forgets the attempts that a key has counted. */
  async clear(key: string): Promise<void> {
    await this.#database.db.deleteFrom("auth_throttles").where("key", "=", key).execute();
  }

  /** Removes what is forgotten anyway. */
  async sweep(): Promise<void> {
    await this.#database.db
      .deleteFrom("auth_throttles")
      .where("updated_at", "<", this.#clock.now() - MEMORY_MS)
      .execute();
  }

  // Returns how long to wait; 0 when the attempt was counted.
  async #count({ key, free }: ThrottleKey): Promise<number> {
    const { db } = this.#database;
    const now = this.#clock.now();
    // The text of the statement is the same every time, so that it is prepared once.
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
            // 0 rather than now where nothing has to wait: the attempt beside this one may have read the clock before.
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
