// Console sessions in memory: bounded in number, idle time and age. Only hashes of their tokens are kept.
import { hash, randomBytes } from "node:crypto";
import type { Clock } from "@platform/kernel/time";
import type { Grant, Session } from "./session.ts";

/** End of a session that is not used. */
export const IDLE_MS = 3_600_000;
/** End of a session in any case. */
export const AGE_MS = 12 * 3_600_000;
const TOKEN_BYTES = 32;
/** The sessions that were unused for the longest time end first. */
const SESSIONS_MAX = 1_000;

/** The sessions. */
export class Sessions {
  readonly #clock: Clock;
  /** By hash of the token, the least recently used first. */
  readonly #sessions = new Map<string, Session>();
  readonly #watchers = new Map<Session, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get count(): number {
    return this.#sessions.size;
  }

  /** Begins a session; returns its token, which is known to the browser only. */
  begin(grant: Grant): { token: string; session: Session } {
    const now = this.#clock.now();
    this.sweep();
    if (this.#sessions.size >= SESSIONS_MAX) this.#end(this.#sessions.keys().next().value!);
    const token = randomBytes(TOKEN_BYTES).toString("base64url");
    const session: Session = {
      ...grant,
      signedInMs: now,
      authenticatedMs: grant.authenticatedMs ?? now,
      lastUsedMs: now,
      endsMs: now + AGE_MS,
    };
    this.#sessions.set(nameToken(token), session);
    return { token, session };
  }

  /** The live session of a token, which counts as used. */
  use(token: string): Session | undefined {
    const name = nameToken(token);
    const session = this.#find(name);
    if (session === undefined) return undefined;
    session.lastUsedMs = this.#clock.now();
    this.#sessions.delete(name);
    this.#sessions.set(name, session);
    return session;
  }

  /** The live session of a token, which does not count as used. */
  peek(token: string): Session | undefined {
    return this.#find(nameToken(token));
  }

  /** Calls `onEnd` once when the session ends, at the latest at the next sweep. Returns a function that forgets it. */
  watch(session: Session, onEnd: () => void): () => void {
    const watchers = this.#watchers.get(session) ?? new Set();
    watchers.add(onEnd);
    this.#watchers.set(session, watchers);
    return () => {
      watchers.delete(onEnd);
      if (watchers.size === 0) this.#watchers.delete(session);
    };
  }

  /** Ends the session of a token; undefined if there is none. */
  end(token: string): Session | undefined {
    const name = nameToken(token);
    const session = this.#find(name);
    if (session !== undefined) this.#end(name);
    return session;
  }

  /** Ends all sessions that match; returns their number. */
  endWhere(matches: (session: Session) => boolean): number {
    const names = [...this.#sessions].flatMap(([name, session]) =>
      matches(session) ? [name] : [],
    );
    for (const name of names) this.#end(name);
    return names.length;
  }

  /** Forgets expired sessions. */
  sweep(): void {
    for (const name of this.#sessions.keys()) this.#find(name);
  }

  #find(name: string): Session | undefined {
    const session = this.#sessions.get(name);
    if (session === undefined) return undefined;
    const now = this.#clock.now();
    if (now < session.endsMs && now < session.lastUsedMs + IDLE_MS) return session;
    this.#end(name);
    return undefined;
  }

  #end(name: string): void {
    const session = this.#sessions.get(name);
    this.#sessions.delete(name);
    if (session === undefined) return;
    const watchers = this.#watchers.get(session);
    this.#watchers.delete(session);
    for (const onEnd of watchers ?? []) onEnd();
  }
}

function nameToken(token: string): string {
  return hash("sha256", token, "base64url");
}
