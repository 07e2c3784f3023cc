// Sessions in the memory of one process: they end with it.
import type { Clock } from "@platform/kernel/time";
import { isEnded, type EndedSessions, type Grant, type Session } from "./session.ts";
import {
  createSession,
  isLive,
  SESSIONS_MAX,
  type EndReason,
  type SessionChange,
  type SessionStore,
} from "./session-store.ts";
import { Watchers } from "./watchers.ts";

/** The store. */
export class MemorySessions implements SessionStore {
  readonly #clock: Clock;
  /** By id, the least recently used first. */
  readonly #sessions = new Map<string, Session>();
  readonly #watchers = new Watchers();
  readonly #renewals = new Map<string, Promise<Session | undefined>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async begin(grant: Grant): Promise<{ token: string; session: Session }> {
    await this.sweep();
    if (this.#sessions.size >= SESSIONS_MAX) this.#end(this.#sessions.keys().next().value!);
    const begun = createSession(grant, this.#clock.now());
    this.#sessions.set(begun.session.id, begun.session);
    return begun;
  }

  find(id: string): Promise<Session | undefined> {
    return Promise.resolve(this.#find(id));
  }

  use(id: string): Promise<Session | undefined> {
    const session = this.#find(id);
    if (session === undefined) return Promise.resolve(undefined);
    const used = { ...session, lastUsedMs: this.#clock.now() };
    this.#sessions.delete(id);
    this.#sessions.set(id, used);
    return Promise.resolve(used);
  }

  update(id: string, change: (session: Session) => SessionChange): Promise<Session | undefined> {
    const session = this.#find(id);
    if (session === undefined) return Promise.resolve(undefined);
    const changed = { ...session, ...change(session) };
    this.#sessions.set(id, changed);
    return Promise.resolve(changed);
  }

  async renew(
    id: string,
    isDue: (session: Session) => boolean,
    work: (session: Session) => Promise<SessionChange>,
  ): Promise<Session | undefined> {
    const known = this.#renewals.get(id);
    if (known !== undefined) return known;
    const session = this.#find(id);
    if (session === undefined || !isDue(session)) return session;
    const renewal = work(session)
      .then((change) => this.update(id, () => change))
      .finally(() => this.#renewals.delete(id));
    this.#renewals.set(id, renewal);
    return renewal;
  }

  end(id: string): Promise<Session | undefined> {
    const session = this.#find(id);
    this.#end(id);
    return Promise.resolve(session);
  }

  endSubject(ended: EndedSessions): Promise<number> {
    const ids = [...this.#sessions.values()].flatMap(({ id, subject }) =>
      isEnded(subject, ended) ? [id] : [],
    );
    for (const id of ids) this.#end(id);
    return Promise.resolve(ids.length);
  }

  watch(id: string, onEnd: (reason: EndReason) => void): () => void {
    return this.#watchers.add(id, onEnd);
  }

  sweep(): Promise<void> {
    for (const id of this.#sessions.keys()) this.#find(id);
    // Sessions that had ended before they were watched.
    for (const id of this.#watchers.ids) this.#find(id);
    return Promise.resolve();
  }

  close(): void {
    this.#sessions.clear();
  }

  #find(id: string): Session | undefined {
    const session = this.#sessions.get(id);
    if (session !== undefined && isLive(session, this.#clock.now())) return session;
    this.#end(id);
    return undefined;
  }

  #end(id: string): void {
    this.#sessions.delete(id);
    this.#watchers.report(id, "ended");
  }
}
