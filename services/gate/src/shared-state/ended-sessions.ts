// Sessions that their provider or their user has ended, bounded: in the state on disk and in each worker.
import { ENDED_SESSIONS_MAX, type EndedSessions } from "./access-spec.ts";

/** The session of a browser, as far as its end concerns it. */
export interface EndableSession {
  client: string;
  /** The gateway's own ID of the session. */
  id: string;
  /** The ID of the provider's session. */
  sid: string | undefined;
  sub: string | undefined;
  /** Seconds since 1970. */
  signedInAt: number;
}

/** A bounded set of ended sessions. */
export class EndedSessionSet {
  readonly #entries = new Map<string, EndedSessions>();

  /** Adds entries, and drops the oldest ones beyond the limit. */
  add(entries: readonly EndedSessions[]): void {
    for (const entry of entries) {
      const key = describe(entry.client, entry.sid, entry.sub);
      const known = this.#entries.get(key)?.endedAt ?? 0;
      this.#entries.delete(key);
      this.#entries.set(key, { ...entry, endedAt: Math.max(known, entry.endedAt) });
    }
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= ENDED_SESSIONS_MAX) return;
      this.#entries.delete(key);
    }
  }

  /** True if an entry ends sessions that this set does not end. */
  isNews({ client, sid, sub, endedAt }: EndedSessions): boolean {
    const known = this.#entries.get(describe(client, sid, sub));
    return known === undefined || known.endedAt < endedAt;
  }

  /** All entries, the oldest first. */
  list(): EndedSessions[] {
    return [...this.#entries.values()];
  }

  clear(): void {
    this.#entries.clear();
  }

  /** True if the session has ended before its time. */
  has({ client, id, sid, sub, signedInAt }: EndableSession): boolean {
    if (this.#entries.size === 0) return false;
    if (this.#entries.has(describe(client, id, undefined))) return true;
    if (sid !== undefined && this.#entries.has(describe(client, sid, undefined))) return true;
    if (sub === undefined) return false;
    const { endedAt = -1 } = this.#entries.get(describe(client, undefined, sub)) ?? {};
    return signedInAt <= endedAt;
  }
}

function describe(client: string, sid: string | undefined, sub: string | undefined): string {
  return JSON.stringify(sid === undefined ? [client, "sub", sub] : [client, "sid", sid]);
}
