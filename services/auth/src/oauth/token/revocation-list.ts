// The durable deny-list of access tokens, and its feed for other verifiers.
import type { Database } from "@platform/kernel/db";
import type { Clock } from "@platform/kernel/time";
import type { Kysely, Transaction } from "kysely";
import type { OAuthTables, RevocationKind } from "../../database/oauth.ts";

/** A revocation of tokens. */
export interface Revocation {
  kind: RevocationKind;
  value: string;
  /** For `sub`: tokens with a lower epoch are void. */
  epoch?: number;
  /** Expiry of the last affected token, in ms. */
  expiresAt: number;
}

/** An entry of the feed. */
export interface FeedEntry {
  seq: number;
  kind: RevocationKind;
  value: string;
  epoch?: number;
  /** Seconds since 1970 after which the entry can be dropped. */
  expires_at: number;
}

/** Token members that a revocation can match. */
export interface RevocableToken {
  jti: string;
  kid: string;
  client_id: string;
  sub?: string | undefined;
  sid?: string | undefined;
  epoch?: number | undefined;
}

const FEED_MAX = 1_000;

/** The deny-list. Every lookup queries the database, so that revocations apply on all nodes immediately. */
export class RevocationList {
  readonly #database: Database<OAuthTables>;
  readonly #clock: Clock;

  constructor(database: Database<OAuthTables>, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Adds entries, in the transaction `alongside` if given. */
  async add(
    entries: readonly Revocation[],
    alongside?: (trx: Transaction<OAuthTables>) => Promise<void>,
  ): Promise<void> {
    if (entries.length === 0 && alongside === undefined) return;
    await this.#database.transaction(async (trx) => {
      await alongside?.(trx);
      await this.insert(trx, entries);
    });
  }

  /** Adds entries in a transaction of the caller. */
  async insert(trx: Kysely<OAuthTables>, entries: readonly Revocation[]): Promise<void> {
    for (const entry of entries) await insertEntry(trx, entry);
  }

  /** True if the token was revoked. */
  async isRevoked(token: RevocableToken): Promise<boolean> {
    const { jti, kid, client_id, sub, sid, epoch = 0 } = token;
    const values = [jti, kid, client_id, sub, sid].filter((value) => value !== undefined);
    const rows = await this.#database.db
      .selectFrom("auth_revocations")
      .select(["kind", "value", "epoch"])
      .where("value", "in", values)
      .execute();
    return rows.some(({ kind, value, epoch: voidBelow }) => {
      switch (kind) {
        case "jti":
          return value === jti;
        case "sid":
          return value === sid;
        case "kid":
          return value === kid;
        case "client":
          return value === client_id;
        case "sub":
          return value === sub && epoch < voidBelow;
        default:
          return kind satisfies never;
      }
    });
  }

  /**
   * Entries after `since`, oldest first, at most 1 000; `next` is the position to continue from. `latest` is the last
   * position: below a follower's own position, the database was restored and the follower must start again from 0.
   */
  async readFeed(
    since: number,
  ): Promise<{ revocations: FeedEntry[]; next: number; latest: number }> {
    // Read first: entries that are added in between are read by the next request.
    const { seq: latest } = await this.#database.db
      .selectFrom("auth_revocation_clock")
      .select("seq")
      .executeTakeFirstOrThrow();
    const rows = await this.#database.db
      .selectFrom("auth_revocations")
      .selectAll()
      .where("seq", ">", since)
      .orderBy("seq")
      .limit(FEED_MAX)
      .execute();
    return {
      revocations: rows.map(({ seq, kind, value, epoch, expires_at }) => ({
        seq,
        kind,
        value,
        ...(kind === "sub" ? { epoch } : {}),
        expires_at: Math.ceil(expires_at / 1_000),
      })),
      next: rows.at(-1)?.seq ?? since,
      latest: Math.max(latest, rows.at(-1)?.seq ?? 0),
    };
  }

  /** Records an access token of a grant, so that revoking the grant finds it. */
  async noteIssued(token: {
    jti: string;
    grantId: string;
    /** Claims requested for userinfo in addition to those of the scope. */
    claims: readonly string[];
    /** In ms. */
    expiresAt: number;
  }): Promise<void> {
    const { jti, grantId, claims, expiresAt } = token;
    await this.#database.db
      .insertInto("auth_oauth_issued")
      .values({
        jti,
        grant_id: grantId,
        claims: claims.length === 0 ? null : claims.join(" "),
        expires_at: expiresAt,
      })
      .execute();
  }

  /** Claims requested for userinfo in addition to those of the token's scope. */
  async findClaimsOf(jti: string): Promise<string[]> {
    const row = await this.#database.db
      .selectFrom("auth_oauth_issued")
      .select("claims")
      .where("jti", "=", jti)
      .executeTakeFirst();
    return row?.claims?.split(" ") ?? [];
  }

  /** The grant of an access token; `undefined` if it has none. */
  async findGrantOf(jti: string): Promise<string | undefined> {
    const row = await this.#database.db
      .selectFrom("auth_oauth_issued")
      .select("grant_id")
      .where("jti", "=", jti)
      .executeTakeFirst();
    return row?.grant_id;
  }

  /** Revokes the access tokens of a grant. */
  async revokeIssued(grantId: string): Promise<void> {
    const now = this.#clock.now();
    const issued = await this.#database.db
      .selectFrom("auth_oauth_issued")
      .selectAll()
      .where("grant_id", "=", grantId)
      .where("expires_at", ">", now)
      .execute();
    await this.add(
      issued.map(({ jti, expires_at }) => ({ kind: "jti", value: jti, expiresAt: expires_at })),
    );
  }

  /** Deletes expired entries. */
  async sweep(): Promise<void> {
    const now = this.#clock.now();
    const { db } = this.#database;
    await db.deleteFrom("auth_revocations").where("expires_at", "<=", now).execute();
    await db.deleteFrom("auth_oauth_issued").where("expires_at", "<=", now).execute();
  }
}

async function insertEntry(trx: Kysely<OAuthTables>, entry: Revocation): Promise<void> {
  const { seq } = await trx
    .updateTable("auth_revocation_clock")
    .set((row) => ({ seq: row("seq", "+", 1) }))
    .returning("seq")
    .executeTakeFirstOrThrow();
  const { kind, value, epoch = 0, expiresAt } = entry;
  const known = await trx
    .selectFrom("auth_revocations")
    .select(["epoch", "expires_at"])
    .where("kind", "=", kind)
    .where("value", "=", value)
    .executeTakeFirst();
  const row = {
    seq,
    epoch: Math.max(epoch, known?.epoch ?? 0),
    expires_at: Math.max(expiresAt, known?.expires_at ?? 0),
  };
  await trx
    .insertInto("auth_revocations")
    .values({ kind, value, ...row })
    .onConflict((conflict) => conflict.columns(["value", "kind"]).doUpdateSet(row))
    .execute();
}
