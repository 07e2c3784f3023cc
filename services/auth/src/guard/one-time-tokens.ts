// Tickets: random, signed, kept as a hash, good once and for a time. Who takes one first has it, on every node.
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "@platform/kernel/time";
import type { Kysely } from "kysely";
import type { AuthDatabase, AuthTables } from "../database/schema.ts";
import type { OneTimeTokenPurpose, OneTimeTokenRow } from "../database/one-time-token.ts";

const RANDOM_LENGTH = 32;
const MAC_LENGTH = 16;
const TIME_LENGTH = 6;
/** Tickets of one user and purpose; the oldest give way. */
const PER_USER_MAX = 20;

/** What a ticket is issued with. */
export interface OneTimeTokenOptions {
  userId?: string;
  payload?: unknown;
  ttlMs: number;
  /** How often `attempt` may be called; default 1. */
  attempts?: number;
}

/** A ticket that was found. */
export interface OneTimeToken {
  userId: string | undefined;
  payload: unknown;
  expiresAt: number;
  attemptsLeft: number;
}

/** A ticket as it is listed: `id` names it and redeems nothing. */
export interface OneTimeTokenItem {
  id: string;
  createdAt: number;
  expiresAt: number;
}

/** Issues and redeems tickets. */
export class OneTimeTokens {
  readonly #database: AuthDatabase;
  readonly #clock: Clock;
  readonly #key: Buffer;

  /** `secret` signs: what we did not issue is refused without asking the database. */
  constructor(database: AuthDatabase, clock: Clock, secret: Buffer) {
    this.#database = database;
    this.#clock = clock;
    this.#key = createHmac("sha256", secret).update("tickets").digest();
  }

  /** The new ticket's token: 64 characters of base64url, not kept. */
  async issue(purpose: OneTimeTokenPurpose, options: OneTimeTokenOptions): Promise<string> {
    const random = randomBytes(RANDOM_LENGTH);
    const token = Buffer.concat([random, this.#sign(purpose, random)]).toString("base64url");
    const now = this.#clock.now();
    if (options.userId !== undefined) await this.#makeRoom(purpose, options.userId);
    await this.#database.db
      .insertInto("auth_tickets")
      .values({
        hash: hashToken(token),
        purpose,
        user_id: options.userId ?? null,
        payload: JSON.stringify(options.payload ?? null),
        attempts_left: options.attempts ?? 1,
        created_at: now,
        expires_at: now + options.ttlMs,
      })
      .execute();
    return token;
  }

  /** Redeems the ticket: of many who try, one gets it. `within` makes it part of a transaction, to be undone with it. */
  async redeem(
    purpose: OneTimeTokenPurpose,
    token: string,
    within: Kysely<AuthTables> = this.#database.db,
  ): Promise<OneTimeToken | undefined> {
    if (!this.#isOurs(purpose, token)) return undefined;
    const row = await within
      .deleteFrom("auth_tickets")
      .where("hash", "=", hashToken(token))
      .where("purpose", "=", purpose)
      .where("expires_at", ">", this.#clock.now())
      .returningAll()
      .executeTakeFirst();
    return row === undefined ? undefined : toTicket(row);
  }

  /** Looks at the ticket and leaves it good. */
  async peek(purpose: OneTimeTokenPurpose, token: string): Promise<OneTimeToken | undefined> {
    if (!this.#isOurs(purpose, token)) return undefined;
    const row = await this.#database.db
      .selectFrom("auth_tickets")
      .selectAll()
      .where("hash", "=", hashToken(token))
      .where("purpose", "=", purpose)
      .where("expires_at", ">", this.#clock.now())
      .executeTakeFirst();
    return row === undefined ? undefined : toTicket(row);
  }

  /** Uses up one attempt and leaves the ticket good; undefined when there is none left. */
  async attempt(purpose: OneTimeTokenPurpose, token: string): Promise<OneTimeToken | undefined> {
    if (!this.#isOurs(purpose, token)) return undefined;
    const row = await this.#database.db
      .updateTable("auth_tickets")
      .set((value) => ({ attempts_left: value("attempts_left", "-", 1) }))
      .where("hash", "=", hashToken(token))
      .where("purpose", "=", purpose)
      .where("expires_at", ">", this.#clock.now())
      .where("attempts_left", ">", 0)
      .returningAll()
      .executeTakeFirst();
    return row === undefined ? undefined : toTicket(row);
  }

  /**
   * A token that is kept nowhere until it is redeemed, for those that anyone may ask for: its end stands in it, and the
   * signature covers it.
   */
  sign(purpose: OneTimeTokenPurpose, ttlMs: number): string {
    const body = randomBytes(RANDOM_LENGTH);
    body.writeUIntBE(this.#clock.now() + ttlMs, 0, TIME_LENGTH);
    return Buffer.concat([body, this.#sign(purpose, body)]).toString("base64url");
  }

  /** Whether `sign` has given the token, and its time is not over. */
  isSigned(purpose: OneTimeTokenPurpose, token: string): boolean {
    return this.#isOurs(purpose, token) && readEnd(token) > this.#clock.now();
  }

  /** Uses up a token of `sign`: true once, on whichever node. */
  async redeemSigned(purpose: OneTimeTokenPurpose, token: string): Promise<boolean> {
    if (!this.isSigned(purpose, token)) return false;
    const { numInsertedOrUpdatedRows } = await this.#database.db
      .insertInto("auth_tickets")
      .values({
        hash: hashToken(token),
        purpose,
        user_id: null,
        payload: "null",
        attempts_left: 0,
        created_at: this.#clock.now(),
        expires_at: readEnd(token),
      })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    return (numInsertedOrUpdatedRows ?? 0n) > 0n;
  }

  /** What a token is listed as. */
  identify(token: string): string {
    return hashToken(token);
  }

  /** Tickets that are good, by id, from after `after`. */
  async list(
    purpose: OneTimeTokenPurpose,
    limit: number,
    after: string | undefined,
  ): Promise<OneTimeTokenItem[]> {
    let query = this.#database.db
      .selectFrom("auth_tickets")
      .select(["hash", "created_at", "expires_at"])
      .where("purpose", "=", purpose)
      .where("expires_at", ">", this.#clock.now());
    if (after !== undefined) query = query.where("hash", ">", after);
    const rows = await query.orderBy("hash").limit(limit).execute();
    return rows.map(({ hash, created_at, expires_at }) => ({
      id: hash,
      createdAt: created_at,
      expiresAt: expires_at,
    }));
  }

  /** Voids the ticket of this id; whether there was one. */
  async revokeById(purpose: OneTimeTokenPurpose, id: string): Promise<boolean> {
    const { numDeletedRows } = await this.#database.db
      .deleteFrom("auth_tickets")
      .where("hash", "=", id)
      .where("purpose", "=", purpose)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** Voids a user's tickets of these purposes. */
  async revoke(
    userId: string,
    purposes: readonly OneTimeTokenPurpose[],
    within: Kysely<AuthTables> = this.#database.db,
  ): Promise<void> {
    await within
      .deleteFrom("auth_tickets")
      .where("user_id", "=", userId)
      .where("purpose", "in", purposes)
      .execute();
  }

  /** Removes what has expired. */
  async sweep(): Promise<void> {
    await this.#database.db
      .deleteFrom("auth_tickets")
      .where("expires_at", "<=", this.#clock.now())
      .execute();
  }

  async #makeRoom(purpose: OneTimeTokenPurpose, userId: string): Promise<void> {
    const { db } = this.#database;
    const old = await db
      .selectFrom("auth_tickets")
      .select("hash")
      .where("user_id", "=", userId)
      .where("purpose", "=", purpose)
      .orderBy("created_at", "desc")
      .limit(PER_USER_MAX)
      .offset(PER_USER_MAX - 1)
      .execute();
    if (old.length === 0) return;
    await db
      .deleteFrom("auth_tickets")
      .where(
        "hash",
        "in",
        old.map(({ hash }) => hash),
      )
      .execute();
  }

  #sign(purpose: OneTimeTokenPurpose, random: Buffer): Buffer {
    return createHmac("sha256", this.#key)
      .update(`${purpose}\0`)
      .update(random)
      .digest()
      .subarray(0, MAC_LENGTH);
  }

  #isOurs(purpose: OneTimeTokenPurpose, token: string): boolean {
    if (token.length !== ((RANDOM_LENGTH + MAC_LENGTH) * 4) / 3) return false;
    const bytes = Buffer.from(token, "base64url");
    if (bytes.length !== RANDOM_LENGTH + MAC_LENGTH) return false;
    const mac = this.#sign(purpose, bytes.subarray(0, RANDOM_LENGTH));
    return timingSafeEqual(bytes.subarray(RANDOM_LENGTH), mac);
  }
}

function readEnd(token: string): number {
  return Buffer.from(token, "base64url").readUIntBE(0, TIME_LENGTH);
}

function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}

function toTicket(row: OneTimeTokenRow): OneTimeToken {
  return {
    userId: row.user_id ?? undefined,
    payload: JSON.parse(row.payload) as unknown,
    expiresAt: row.expires_at,
    attemptsLeft: row.attempts_left,
  };
}
