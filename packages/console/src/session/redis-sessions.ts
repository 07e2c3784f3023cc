// Sessions in Redis, which several consoles share: each accepts the sessions of all, and ends them for all.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@platform/kernel/log";
import type { SecretBox } from "@platform/kernel/secrets";
import type { Clock } from "@platform/kernel/time";
import { RedisClient, type RedisReply } from "@platform/redis";
import { createConsoleError } from "../errors.ts";
import {
  BEGIN,
  END,
  FIND_ENDED,
  INDEX,
  LIST,
  nameKey,
  nameLock,
  READ,
  RELEASE,
  REPLACE,
} from "./redis-scripts.ts";
import { hashSubject, openSession, sealSession } from "./sealed-session.ts";
import { isEnded, type EndedSessions, type Grant, type Session } from "./session.ts";
import {
  createSession,
  IDLE_MS,
  isLive,
  SESSIONS_MAX,
  type EndReason,
  type SessionChange,
  type SessionStore,
} from "./session-store.ts";
import { Watchers } from "./watchers.ts";

/** Time in which Redis must reply. */
const DEADLINE_MS = 2_000;
/** Time without a reply after which watched sessions are given up: one of them may have ended. */
const UNKNOWN_MS = 10_000;
/** Attempts of a change while other processes change the same session. */
const ATTEMPTS_MAX = 20;
/** Longest renewal. One that takes longer loses its lock, so that a process that died holds up nobody. */
const RENEWAL_MS = 20_000;
const RENEWAL_CHECK_MS = 100;

/** Options of {@link RedisSessions}. */
export interface RedisSessionsOptions {
  url: string;
  /** Encrypts sessions; all consoles have the same keys. */
  box: SecretBox;
  clock: Clock;
  logger: Logger;
}

interface StoredState {
  session: Session;
  version: string;
}

/** The store. */
export class RedisSessions implements SessionStore {
  readonly #options: RedisSessionsOptions;
  readonly #redis: RedisClient;
  readonly #watchers = new Watchers();
  readonly #renewals = new Map<string, Promise<Session | undefined>>();
  #answeredMs: number;
  #hasForeign = false;

  /** Connects in the background. */
  constructor(options: RedisSessionsOptions) {
    const { url, clock, logger } = options;
    this.#options = options;
    this.#answeredMs = clock.monotonicMs();
    let isReported = false;
    this.#redis = new RedisClient({
      url,
      onFailure: (error) => {
        if (!isReported) logger.error("sessions of the console are unavailable", { error });
        isReported = true;
      },
      onRecovery: () => {
        isReported = false;
        logger.info("sessions of the console are available again");
      },
    });
  }

  async begin(grant: Grant): Promise<{ token: string; session: Session }> {
    const { clock, box } = this.#options;
    const begun = createSession(grant, clock.now());
    const { session } = begun;
    const { id, subject, lastUsedMs, endsMs } = session;
    const data = sealSession(session, box);
    const hashes = [hashSubject(subject?.sub), hashSubject(subject?.sid)];
    const times = [lastUsedMs, IDLE_MS, endsMs].map(String);
    const words = [id, ...times, data, ...hashes, String(SESSIONS_MAX)];
    await this.#ask(BEGIN.run(this.#redis, [nameKey(id), INDEX], words));
    return begun;
  }

  async find(id: string): Promise<Session | undefined> {
    return (await this.#read(id))?.session;
  }

  async use(id: string): Promise<Session | undefined> {
    return (await this.#read(id, "1"))?.session;
  }

  async update(
    id: string,
    change: (session: Session) => SessionChange,
  ): Promise<Session | undefined> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const state = await this.#read(id);
      if (state === undefined) return undefined;
      const changed = { ...state.session, ...change(state.session) };
      const words = [state.version, sealSession(changed, this.#options.box)];
      if ((await this.#ask(REPLACE.run(this.#redis, [nameKey(id)], words))) === 1) return changed;
      await sleep(Math.random() * attempt * 5);
    }
    throw createConsoleError("sessions_unavailable", {
      detail: "The session is changed by too many requests at a time.",
    });
  }

  renew(
    id: string,
    isDue: (session: Session) => boolean,
    work: (session: Session) => Promise<SessionChange>,
  ): Promise<Session | undefined> {
    const known = this.#renewals.get(id);
    if (known !== undefined) return known;
    const renewal = this.#renew(id, isDue, work).finally(() => this.#renewals.delete(id));
    this.#renewals.set(id, renewal);
    return renewal;
  }

  async end(id: string): Promise<Session | undefined> {
    const session = await this.find(id);
    await this.#ask(END.run(this.#redis, [nameKey(id), INDEX], [id]));
    this.#watchers.report(id, "ended");
    return session;
  }

  async endSubject({ sub, sid }: EndedSessions): Promise<number> {
    const listed = (await this.#ask(LIST.run(this.#redis, [INDEX], []))) as string[];
    const hashed = {
      sub: sub === undefined ? undefined : hashSubject(sub),
      sid: sid === undefined ? undefined : hashSubject(sid),
    };
    let count = 0;
    for (let at = 0; at < listed.length; at += 3) {
      const [id, ownSub, ownSid] = listed.slice(at, at + 3) as [string, string, string];
      const subject = ownSub === "" ? undefined : { sub: ownSub, sid: ownSid || undefined };
      if (!isEnded(subject, hashed)) continue;
      await this.end(id);
      count += 1;
    }
    return count;
  }

  watch(id: string, onEnd: (reason: EndReason) => void): () => void {
    return this.#watchers.add(id, onEnd);
  }

  async sweep(): Promise<void> {
    const { ids } = this.#watchers;
    try {
      const times = [this.#options.clock.now(), IDLE_MS].map(String);
      const ended = (await this.#ask(
        FIND_ENDED.run(this.#redis, ids.map(nameKey), times),
      )) as number[];
      for (const at of ended) this.#watchers.report(ids[at]!, "ended");
    } catch {
      // The client has reported the failure.
      if (this.#options.clock.monotonicMs() - this.#answeredMs < UNKNOWN_MS) return;
      for (const id of ids) this.#watchers.report(id, "unknown");
    }
  }

  close(): void {
    this.#redis.close();
  }

  async #renew(
    id: string,
    isDue: (session: Session) => boolean,
    work: (session: Session) => Promise<SessionChange>,
  ): Promise<Session | undefined> {
    const { clock } = this.#options;
    const owner = randomUUID();
    const lock = nameLock(id);
    const beganMs = clock.monotonicMs();
    const claim = ["SET", lock, owner, "NX", "PX", String(RENEWAL_MS)];
    while ((await this.#ask(this.#redis.send(...claim))) === null) {
      const session = await this.find(id);
      if (session === undefined || !isDue(session)) return session;
      if (clock.monotonicMs() - beganMs > RENEWAL_MS + DEADLINE_MS) {
        throw createConsoleError("sessions_unavailable");
      }
      await sleep(RENEWAL_CHECK_MS);
    }
    try {
      // Another process may have renewed it before this one got the lock.
      const session = await this.find(id);
      if (session === undefined || !isDue(session)) return session;
      const change = await work(session);
      return await this.update(id, () => change);
    } finally {
      // Otherwise it expires.
      await this.#ask(RELEASE.run(this.#redis, [lock], [owner])).catch(() => undefined);
    }
  }

  async #read(id: string, mark: "0" | "1" = "0"): Promise<StoredState | undefined> {
    const { clock, box } = this.#options;
    const now = clock.now();
    const words = [id, String(now), String(IDLE_MS), mark];
    const reply = await this.#ask(READ.run(this.#redis, [nameKey(id), INDEX], words));
    if (!Array.isArray(reply)) return undefined;
    const [data = "", version = "", used = ""] = reply.map(String);
    let session: Session;
    try {
      session = openSession(data, { id, lastUsedMs: Number(used), box });
    } catch (error) {
      this.#reportForeign(error);
      return undefined;
    }
    // The end inside of the sealed text cannot be moved.
    return isLive(session, now) ? { session, version } : undefined;
  }

  #reportForeign(error: unknown): void {
    if (this.#hasForeign) return;
    this.#hasForeign = true;
    this.#options.logger.error(
      "a session of the console cannot be decrypted: all consoles need the same encryption keys",
      { error },
    );
  }

  async #ask(reply: Promise<RedisReply>): Promise<RedisReply> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new Error("no reply in time")), DEADLINE_MS);
    try {
      const answer = await Promise.race([reply, late.promise]);
      this.#answeredMs = this.#options.clock.monotonicMs();
      return answer;
    } catch (cause) {
      throw createConsoleError("sessions_unavailable", { cause });
    } finally {
      clearTimeout(timer);
    }
  }
}
