// A session as other modules see it.
import type { SessionRow } from "../database/session.ts";

/** A live session. Times are in ms. */
export interface SessionInfo {
  /** The `sid` of tokens. */
  readonly id: string;
  readonly userId: string;
  readonly authTime: number;
  /** Authentication methods as RFC 8176 names them. */
  readonly amr: readonly string[];
  readonly acr: string;
  readonly createdAt: number;
  readonly lastSeenAt: number;
  /** The earlier of idle and absolute expiry. */
  readonly expiresAt: number;
}

/** True if the session has expired. */
export function isExpired(row: SessionRow, nowMs: number): boolean {
  return nowMs >= row.idle_expires_at || nowMs >= row.absolute_expires_at;
}

/** Converts a row, without its secrets. */
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
