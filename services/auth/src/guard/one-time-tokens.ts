// One-time tokens: random, signed, stored as a hash, valid once and for a limited time, on any node.
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "@platform/kernel/time";
import type { Kysely } from "kysely";
import type { OneTimeTokenPurpose, OneTimeTokenRow } from "../database/one-time-token.ts";
import type { AuthDatabase, AuthTables } from "../database/schema.ts";

const RANDOM_LENGTH = 32;
const MAC_LENGTH = 16;
const TIME_LENGTH = 6;
/** Tokens of one user and purpose; issuing more deletes the oldest. */
const PER_USER_MAX = 20;

/** Options of a new token. */
export interface OneTimeTokenOptions {
  userId?: string;
  payload?: unknown;
  ttlMs: number;
  /** Number of calls of `attempt`. Default 1. */
  attempts?: number;
}

/** A token as it was issued. */
export interface OneTimeToken {
  userId: string | undefined;
  payload: unknown;
  expiresAt: number;
  attemptsLeft: number;
}

/** A token in a list; `id` identifies it and cannot redeem it. */
export interface OneTimeTokenItem {
  id: string;
  createdAt: number;
  expiresAt: number;
}

/** Issues and redeems tokens. */
export class OneTimeTokens {
  readonly #database: AuthDatabase;
  readonly #clock: Clock;
  readonly #key: Buffer;

  /** `secret` signs tokens, so that foreign ones are rejected without a query. */
  constructor(database: AuthDatabase, clock: Clock, secret: Buffer) {
    this.#database = database;
    this.#clock = clock;
    this.#key = createHmac("sha256", secret).update("tickets").digest();
  }

  /** Issues a token: 64 base64url characters, stored as a hash only. */
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

  /** Redeems a token; only one of several concurrent callers succeeds. `within` is a transaction that can undo it. */
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

  /** Reads a token without using it. */
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

  /** Uses one attempt of a token, which stays valid; `undefined` if no attempt is left. */
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
   * Creates a token that is stored only when it is redeemed, for purposes that need no authentication. The token
   * contains its expiry time, which the signature covers.
   */
  sign(purpose: OneTimeTokenPurpose, ttlMs: number): string {
    const body = randomBytes(RANDOM_LENGTH);
    body.writeUIntBE(this.#clock.now() + ttlMs, 0, TIME_LENGTH);
    return Buffer.concat([body, this.#sign(purpose, body)]).toString("base64url");
  }

  /** True if the token was created by `sign` and has not expired. */
  isSigned(purpose: OneTimeTokenPurpose, token: string): boolean {
    return this.#isOurs(purpose, token) && readEnd(token) > this.#clock.now();
  }

  /** Redeems a token of `sign`: true for the first caller only, across all nodes. */
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

  /** The id of a token in lists. */
  identify(token: string): string {
    return hashToken(token);
  }

  /** Valid tokens by id, after `after`. */
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

  /** Revokes the token with this id; false if there is none. */
  async revokeById(purpose: OneTimeTokenPurpose, id: string): Promise<boolean> {
    const { numDeletedRows } = await this.#database.db
      .deleteFrom("auth_tickets")
      .where("hash", "=", id)
      .where("purpose", "=", purpose)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** Revokes a user's tokens of these purposes. */
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

  /** Deletes expired tokens. */
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
