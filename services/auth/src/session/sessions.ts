// Sessions: opened by a sign-in, renewed while in use, ended by their owner, an administrator or expiry.
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import type { Kysely } from "kysely";
import type { AuthDatabase, AuthTables } from "../database/schema.ts";
import type { SessionRow } from "../database/session.ts";
import { nameDevice } from "./device.ts";
import { isExpired, toSessionInfo, type SessionInfo } from "./session.ts";
import type { SessionTokens } from "./token.ts";

/** Time for which the previous token stays valid after a renewal: requests in flight still carry it. */
const PREVIOUS_MS = 30_000;
/** Precision of last-seen times: not every request causes a write. */
const SEEN_MS = 60_000;
const PER_USER_MAX = 100;
const USER_AGENT_MAX = 400;

/** Options of `Sessions`. */
export interface SessionsOptions {
  database: AuthDatabase;
  clock: Clock;
  ids: IdSource;
  tokens: SessionTokens;
  /** Idle timeout of a session. */
  idleMs: number;
  /** Maximum lifetime of a session. */
  absoluteMs: number;
}

/** The origin of a request. */
export interface Origin {
  ip: string;
  userAgent: string;
}

/** The authentication of a user. */
export interface Proof {
  /** Methods of RFC 8176. */
  amr: readonly string[];
  acr: string;
}

/** A session with its new token. */
export interface OpenedSession {
  session: SessionInfo;
  token: string;
  /** Sessions of the user that ended to make room. */
  displaced?: readonly string[];
}

/** A session found by its token; `token` is the new token if it was renewed. */
export interface FoundSession {
  session: SessionInfo;
  token: string | undefined;
}

/** A session as its owner sees it. */
export interface SessionItem {
  id: string;
  device: string;
  user_agent: string;
  ip: string;
  created_at: string;
  last_seen_at: string;
  expires_at: string;
  current: boolean;
  amr: readonly string[];
}

/** A session in the list of all users. */
export interface UserSessionItem extends SessionItem {
  user: { id: string; username: string };
}

/** Sessions in the database. */
export class Sessions {
  readonly #options: SessionsOptions;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** Opens a session. A user has at most 100; opening another one ends the least recently seen. */
  async open(userId: string, proof: Proof, origin: Origin): Promise<OpenedSession> {
    const now = this.#options.clock.now();
    const { token, hash } = this.#options.tokens.create();
    const userAgent = origin.userAgent.slice(0, USER_AGENT_MAX);
    const row: SessionRow = {
      id: this.#options.ids.uuid(),
      user_id: userId,
      token_hash: hash,
      token_issued_at: now,
      previous_hash: null,
      previous_until: null,
      auth_time: now,
      amr: JSON.stringify(proof.amr),
      acr: proof.acr,
      device: nameDevice(userAgent),
      user_agent: userAgent,
      ip: origin.ip,
      created_at: now,
      last_seen_at: now,
      idle_expires_at: now + this.#options.idleMs,
      absolute_expires_at: now + this.#options.absoluteMs,
    };
    const displaced = await this.#makeRoom(userId);
    await this.#options.database.db.insertInto("auth_sessions").values(row).execute();
    return { session: toSessionInfo(row), token, displaced };
  }

  /** The live session with this id; `undefined` if it has ended or expired. */
  async find(sid: string): Promise<SessionInfo | undefined> {
    const row = await this.#options.database.db
      .selectFrom("auth_sessions")
      .selectAll()
      .where("id", "=", sid)
      .executeTakeFirst();
    return row === undefined || isExpired(row, this.#options.clock.now())
      ? undefined
      : toSessionInfo(row);
  }

  /** True if the session is alive and belongs to this user. */
  async isAlive(sid: string, userId: string): Promise<boolean> {
    return (await this.find(sid))?.userId === userId;
  }

  /** The session of a token. Updates the last-seen time, and renews a token in the second half of its lifetime. */
  async use(token: string): Promise<FoundSession | undefined> {
    const hash = this.#options.tokens.read(token);
    if (hash === undefined) return undefined;
    const now = this.#options.clock.now();
    const row = await this.#findRow(hash, now);
    if (row === undefined) return undefined;
    const isCurrent = row.token_hash === hash;
    if (isCurrent && now - row.token_issued_at >= this.#options.idleMs / 2) {
      const renewed = await this.#renew(row, now);
      if (renewed !== undefined) return { session: toSessionInfo(row), token: renewed };
    } else if (now - row.last_seen_at >= Math.min(SEEN_MS, this.#options.idleMs / 4)) {
      await this.#options.database.db
        .updateTable("auth_sessions")
        .set({ last_seen_at: now, idle_expires_at: now + this.#options.idleMs })
        .where("id", "=", row.id)
        .execute();
    }
    return { session: toSessionInfo(row), token: undefined };
  }

  /** The session of a token, which does not count as used. */
  async peek(token: string): Promise<SessionInfo | undefined> {
    const hash = this.#options.tokens.read(token);
    const row =
      hash === undefined ? undefined : await this.#findRow(hash, this.#options.clock.now());
    return row === undefined ? undefined : toSessionInfo(row);
  }

  async #findRow(hash: string, now: number): Promise<SessionRow | undefined> {
    const row = await this.#options.database.db
      .selectFrom("auth_sessions")
      .selectAll()
      .where((where) =>
        where.or([
          where("token_hash", "=", hash),
          where.and([where("previous_hash", "=", hash), where("previous_until", ">", now)]),
        ]),
      )
      .executeTakeFirst();
    return row === undefined || isExpired(row, now) ? undefined : row;
  }

  /** Raises the authentication level of a session and issues a new token; the previous token ends immediately. */
  async elevate(sid: string, proof: Proof): Promise<OpenedSession | undefined> {
    const now = this.#options.clock.now();
    const { token, hash } = this.#options.tokens.create();
    const row = await this.#options.database.db
      .updateTable("auth_sessions")
      .set({
        token_hash: hash,
        token_issued_at: now,
        previous_hash: null,
        previous_until: null,
        auth_time: now,
        amr: JSON.stringify(proof.amr),
        acr: proof.acr,
        last_seen_at: now,
        idle_expires_at: now + this.#options.idleMs,
      })
      .where("id", "=", sid)
      .where("absolute_expires_at", ">", now)
      .returningAll()
      .executeTakeFirst();
    return row === undefined ? undefined : { session: toSessionInfo(row), token };
  }

  /** A user's live sessions, most recently seen first. */
  async list(userId: string, currentId: string | undefined): Promise<SessionItem[]> {
    const now = this.#options.clock.now();
    const rows = await this.#options.database.db
      .selectFrom("auth_sessions")
      .selectAll()
      .where("user_id", "=", userId)
      .where("idle_expires_at", ">", now)
      .where("absolute_expires_at", ">", now)
      .orderBy("last_seen_at", "desc")
      .execute();
    return rows.map((row) => showSession(row, row.id === currentId));
  }

  /** Live sessions of all users after an id, newest first. */
  async listAll(limit: number, after: string | undefined): Promise<UserSessionItem[]> {
    const now = this.#options.clock.now();
    let query = this.#options.database.db
      .selectFrom("auth_sessions")
      .innerJoin("auth_users", "auth_users.id", "auth_sessions.user_id")
      .selectAll("auth_sessions")
      .select("auth_users.username")
      .where("idle_expires_at", ">", now)
      .where("absolute_expires_at", ">", now);
    if (after !== undefined) query = query.where("auth_sessions.id", "<", after);
    const rows = await query.orderBy("auth_sessions.id", "desc").limit(limit).execute();
    return rows.map((row) => ({
      ...showSession(row, false),
      user: { id: row.user_id, username: row.username },
    }));
  }

  /** Ends a session, with `userId` only if it belongs to that user; false if there was none. */
  async end(sid: string, userId?: string): Promise<boolean> {
    let query = this.#options.database.db.deleteFrom("auth_sessions").where("id", "=", sid);
    if (userId !== undefined) query = query.where("user_id", "=", userId);
    const { numDeletedRows } = await query.executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** Ends all sessions of a user except `exceptId`; returns their number. */
  async endAll(
    userId: string,
    exceptId: string | undefined,
    trx: Kysely<AuthTables>,
  ): Promise<number> {
    let query = trx.deleteFrom("auth_sessions").where("user_id", "=", userId);
    if (exceptId !== undefined) query = query.where("id", "!=", exceptId);
    return Number((await query.executeTakeFirst()).numDeletedRows);
  }

  /** Ends all sessions of a user without a second factor except one; returns their ids. */
  async endSingleFactor(userId: string, exceptId: string | undefined): Promise<string[]> {
    const ended = await this.#options.database.db
      .deleteFrom("auth_sessions")
      .where("user_id", "=", userId)
      .where("acr", "!=", "2")
      .where("id", "!=", exceptId ?? "")
      .returning("id")
      .execute();
    return ended.map(({ id }) => id);
  }

  /** Number of live sessions. */
  async count(): Promise<number> {
    const now = this.#options.clock.now();
    const { sessions } = await this.#options.database.db
      .selectFrom("auth_sessions")
      .select((select) => select.fn.countAll<number>().as("sessions"))
      .where("idle_expires_at", ">", now)
      .where("absolute_expires_at", ">", now)
      .executeTakeFirstOrThrow();
    return sessions;
  }

  /** Deletes expired sessions. */
  async sweep(): Promise<void> {
    const now = this.#options.clock.now();
    await this.#options.database.db
      .deleteFrom("auth_sessions")
      .where((where) =>
        where.or([where("idle_expires_at", "<=", now), where("absolute_expires_at", "<=", now)]),
      )
      .execute();
  }

  // One of several concurrent requests gets the new token; the others continue with the previous one for a moment.
  async #renew(row: SessionRow, now: number): Promise<string | undefined> {
    const { token, hash } = this.#options.tokens.create();
    const { numUpdatedRows } = await this.#options.database.db
      .updateTable("auth_sessions")
      .set({
        token_hash: hash,
        token_issued_at: now,
        previous_hash: row.token_hash,
        previous_until: now + PREVIOUS_MS,
        last_seen_at: now,
        idle_expires_at: now + this.#options.idleMs,
      })
      .where("id", "=", row.id)
      .where("token_hash", "=", row.token_hash)
      .executeTakeFirst();
    return numUpdatedRows > 0n ? token : undefined;
  }

  async #makeRoom(userId: string): Promise<string[]> {
    const rows = await this.#options.database.db
      .selectFrom("auth_sessions")
      .select("id")
      .where("user_id", "=", userId)
      .orderBy("last_seen_at", "desc")
      .limit(PER_USER_MAX)
      .offset(PER_USER_MAX - 1)
      .execute();
    for (const { id } of rows) await this.end(id, userId);
    return rows.map(({ id }) => id);
  }
}

function showSession(row: SessionRow, current: boolean): SessionItem {
  return {
    id: row.id,
    device: row.device,
    user_agent: row.user_agent,
    ip: row.ip,
    created_at: formatTime(row.created_at),
    last_seen_at: formatTime(row.last_seen_at),
    expires_at: formatTime(Math.min(row.idle_expires_at, row.absolute_expires_at)),
    current,
    amr: JSON.parse(row.amr) as string[],
  };
}

/** Formats a time for the API. */
export function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}
