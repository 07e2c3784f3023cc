// What the other rooms and the OAuth core see of a session.
import type { AuthDatabase } from "../database/schema.ts";
import type { SessionRow } from "../database/session.ts";

/** A live session. Times are in ms. */
export interface SessionInfo {
  /** The `sid` of tokens. */
  readonly id: string;
  readonly userId: string;
  readonly authTime: number;
  /** Methods by which the user proved who they are, as RFC 8176 names them. */
  readonly amr: readonly string[];
  readonly acr: string;
  readonly createdAt: number;
  readonly lastSeenAt: number;
  /** The earlier of the idle and the absolute end. */
  readonly expiresAt: number;
}

/** Looks sessions up. */
export interface SessionLookup {
  /** The session while it lives; undefined once it has ended or expired. */
  find(sid: string): Promise<SessionInfo | undefined>;
}

/** Sessions over the database. */
export function createSessionLookup(database: AuthDatabase, now: () => number): SessionLookup {
  return {
    find: async (sid) => {
      const row = await database.db
        .selectFrom("auth_sessions")
        .selectAll()
        .where("id", "=", sid)
        .executeTakeFirst();
      return row === undefined || isExpired(row, now()) ? undefined : toSessionInfo(row);
    },
  };
}

/** Whether the session is over by time. */
export function isExpired(row: SessionRow, nowMs: number): boolean {
  return nowMs >= row.idle_expires_at || nowMs >= row.absolute_expires_at;
}

/** A row without its secrets. */
export function toSessionInfo(row: SessionRow): SessionInfo {
  return {
    id: row.id,
    userId: row.user_id,
    authTime: row.auth_time,
    amr: JSON.parse(row.amr) as string[],
    acr: row.acr,
    createdAt: row.created_at,
    lastSeenAt: row.last_seen_at,
    expiresAt: Math.min(row.idle_expires_at, row.absolute_expires_at),
  };
}
