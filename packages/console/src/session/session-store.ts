// The contract of stores of console sessions, and what both share: in memory for one process, in Redis for several.
import { hash, randomBytes } from "node:crypto";
import type { EndedSessions, Grant, Session } from "./session.ts";

/** End of a session that is not used. */
export const IDLE_MS = 3_600_000;
/** End of a session in any case. */
export const AGE_MS = 12 * 3_600_000;
/** More sessions end those that were unused for the longest time. */
export const SESSIONS_MAX = 1_000;
/** Interval at which `sweep` is called. */
export const SWEEP_MS = 1_000;
const TOKEN_BYTES = 32;

/** The parts of a session that change while it lives. */
export type SessionChange = Partial<
  Pick<Session, "credentials" | "tokens" | "isAdmin" | "permissions" | "roles">
>;

/**
 * Reason for which a watched session is given up. `ended`: it ended, here or in another process. `unknown`: the store
 * cannot be reached for so long that it may have ended.
 */
export type EndReason = "ended" | "unknown";

/** Sessions, bounded in number, idle time and age. Rejects with 503 `sessions_unavailable` if the store does not answer. */
export interface SessionStore {
  /** Begins a session; returns its token, which only the browser may keep. */
  begin(grant: Grant): Promise<{ token: string; session: Session }>;
  /** The live session, which does not count as used. */
  find(id: string): Promise<Session | undefined>;
  /** The live session, which counts as used. */
  use(id: string): Promise<Session | undefined>;
  /** Changes a live session atomically; `change` may be called several times. Undefined if the session has ended. */
  update(id: string, change: (session: Session) => SessionChange): Promise<Session | undefined>;
  /**
   * Changes a live session if `isDue`, by one call at a time of all processes: callers that find the work in flight wait for
   * it. Rejects as `work` does.
   */
  renew(
    id: string,
    isDue: (session: Session) => boolean,
    work: (session: Session) => Promise<SessionChange>,
  ): Promise<Session | undefined>;
  /** Ends a session; returns it if it was live. */
  end(id: string): Promise<Session | undefined>;
  /** Ends the sessions that identity names; returns their number. */
  endSubject(ended: EndedSessions): Promise<number>;
  /** Calls `onEnd` once after the session has ended, at the latest at the second next sweep. Returns a function that stops it. */
  watch(id: string, onEnd: (reason: EndReason) => void): () => void;
  /** Forgets expired sessions and reports ends; called every `SWEEP_MS`. */
  sweep(): Promise<void>;
  close(): void;
}

/** Id of the session of a token. */
export function nameSession(token: string): string {
  return hash("sha256", token, "base64url");
}

/** Creates a session with a new token. */
export function createSession(grant: Grant, now: number): { token: string; session: Session } {
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  const session: Session = {
    ...grant,
    id: nameSession(token),
    signedInMs: now,
    authenticatedMs: grant.authenticatedMs ?? now,
    lastUsedMs: now,
    endsMs: now + AGE_MS,
  };
  return { token, session };
}

/** True if a session has neither been idle for too long nor reached its age. */
export function isLive({ lastUsedMs, endsMs }: Session, now: number): boolean {
  return now < endsMs && now < lastUsedMs + IDLE_MS;
}
