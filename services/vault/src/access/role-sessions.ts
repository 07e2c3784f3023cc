// Session keys: temporary access keys that a user's token was exchanged for. They end with the token's session.
import { randomBytes } from "node:crypto";
import type { RevocationSet } from "@platform/kernel/identity";
import type { Logger } from "@platform/kernel/log";
import type { Collector, MetricFamily } from "@platform/kernel/metrics";
import type { Clock } from "@platform/kernel/time";
import { compilePolicy, type Policy } from "./policy.ts";
import type { SecretBox } from "./secret-box.ts";
import { SessionJournal, type StoredSession } from "./session-journal.ts";

const KEYS_MAX = 20_000;
/** Enough for the pages and programs of one user; a further key ends the oldest one. */
const KEYS_PER_USER_MAX = 64;
const KEY_PREFIX = "ASIA";
const KEY_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const KEY_FORM = /^ASIA[A-Z2-7]{16}$/;

/** A session, without its key. */
export type RoleSession = Omit<StoredSession, "accessKey" | "sealed" | "issuedMs">;

/** The credentials of a session, which are returned only once. */
export interface SessionKey {
  accessKey: string;
  secret: string;
  /** Required in every request in addition to the signature. */
  sessionToken: string;
  expiresMs: number;
}

/** A live session as requests use it. */
export interface ActiveSession {
  readonly key: SessionKey;
  readonly session: StoredSession;
  readonly limit: Policy | undefined;
}

/** Options of {@link RoleSessions}. */
export interface RoleSessionsOptions {
  /** Path of the journal. */
  path: string;
  box: SecretBox;
  clock: Clock;
  log: Logger;
  revocations: RevocationSet;
}

/** True if an access key has the form of a session key, live or not. */
export function isSessionKey(accessKey: string): boolean {
  return KEY_FORM.test(accessKey);
}

/** All live session keys. They survive restarts; expired and revoked ones are deleted. */
export class RoleSessions implements Collector {
  readonly name = "session-keys";
  readonly #options: RoleSessionsOptions;
  readonly #journal: SessionJournal;
  readonly #active = new Map<string, ActiveSession>();
  /** Access keys by user, oldest first. */
  readonly #byUser = new Map<string, Set<string>>();
  /** Keys that are being written. */
  #reserved = 0;
  #issued = 0;
  #revoked = 0;

  /** Reads the journal. Throws if its format is unknown. */
  constructor(options: RoleSessionsOptions) {
    this.#options = options;
    this.#journal = new SessionJournal(options.path, () => this.#listStored());
    for (const session of this.#journal.read()) this.#adopt(session);
    const { damage } = this.#journal;
    if (damage !== undefined) {
      options.log.error("session keys were lost: their holders have to get new ones", {
        path: options.path,
        reason: damage,
        remedy: "restore the file from a backup that is as new, or leave it: keys are renewed",
      });
    }
  }

  /** The live session of an access key; undefined if it is unknown, expired or revoked. */
  find(accessKey: string): ActiveSession | undefined {
    const found = this.#active.get(accessKey);
    return found === undefined || found.key.expiresMs <= this.#options.clock.now()
      ? undefined
      : found;
  }

  /** True while no further key can be issued. */
  get isFull(): boolean {
    return this.#active.size + this.#reserved >= KEYS_MAX;
  }

  /**
   * Issues a key, which is on disk when this resolves; undefined if its token was revoked meanwhile. A user's oldest key
   * ends if there are too many.
   */
  async issue(session: RoleSession): Promise<SessionKey | undefined> {
    const { box, clock, revocations } = this.#options;
    const key: SessionKey = {
      accessKey: createAccessKey(),
      secret: randomBytes(30).toString("base64url"),
      sessionToken: randomBytes(48).toString("base64url"),
      expiresMs: session.expiresMs,
    };
    const { secret, sessionToken } = key;
    const stored: StoredSession = {
      ...session,
      accessKey: key.accessKey,
      sealed: box.seal(JSON.stringify({ secret, sessionToken }), key.accessKey),
      issuedMs: clock.now(),
    };
    this.#makeRoom(nameUser(session));
    this.#reserved++;
    try {
      await this.#journal.append({ issued: stored });
    } finally {
      this.#reserved--;
    }
    if (revocations.has(session.token)) {
      this.#writeEnd([key.accessKey]);
      return undefined;
    }
    this.#activate(stored, key);
    this.#issued++;
    return key;
  }

  /** Ends the keys whose tokens are revoked; call it after revocations were added. */
  endRevoked(): void {
    const { revocations, log } = this.#options;
    const ended = [...this.#active.values()].filter(({ session }) =>
      revocations.has(session.token),
    );
    if (ended.length === 0) return;
    this.#revoked += ended.length;
    this.#end(ended.map(({ key }) => key.accessKey));
    log.info("session keys ended: their tokens were revoked", { keys: ended.length });
  }

  /** Seals all keys with the current key of the box; resolves when they are on disk. */
  async renewSecrets(): Promise<void> {
    // A key that is being written is live afterwards.
    await this.#journal.close();
    for (const found of this.#active.values()) {
      const { accessKey, sealed } = found.session;
      const renewed = this.#options.box.renew(sealed, accessKey);
      if (renewed === undefined) continue;
      this.#active.set(accessKey, { ...found, session: { ...found.session, sealed: renewed } });
    }
    // The file has keys that have ended, too.
    if (!this.#journal.isEmpty) await this.#journal.rewrite();
  }

  /** Drops expired keys from memory; the journal drops them when it is rewritten. */
  sweep(): void {
    const now = this.#options.clock.now();
    for (const { key, session } of this.#active.values()) {
      if (key.expiresMs <= now) this.#forget(key.accessKey, session);
    }
  }

  /** Waits for the writes in flight. */
  close(): Promise<void> {
    return this.#journal.close();
  }

  collect(): MetricFamily[] {
    return [
      scalar("gauge", "platform_vault_session_keys", "Live session keys.", this.#active.size),
      scalar(
        "counter",
        "platform_vault_session_keys_issued_total",
        "Session keys issued for tokens.",
        this.#issued,
      ),
      scalar(
        "counter",
        "platform_vault_session_keys_revoked_total",
        "Session keys ended because their token was revoked.",
        this.#revoked,
      ),
    ];
  }

  #adopt(session: StoredSession): void {
    if (session.expiresMs <= this.#options.clock.now()) return;
    const { secret, sessionToken } = JSON.parse(
      this.#options.box.open(session.sealed, session.accessKey),
    ) as { secret: string; sessionToken: string };
    const { accessKey, expiresMs } = session;
    this.#activate(session, { accessKey, secret, sessionToken, expiresMs });
  }

  #activate(session: StoredSession, key: SessionKey): void {
    const limit =
      session.policy === undefined ? undefined : compilePolicy(session.policy, undefined);
    this.#active.set(key.accessKey, { key, session, limit });
    const user = nameUser(session);
    const keys = this.#byUser.get(user) ?? new Set();
    keys.add(key.accessKey);
    this.#byUser.set(user, keys);
  }

  #makeRoom(user: string): void {
    const keys = this.#byUser.get(user);
    if (keys === undefined || keys.size < KEYS_PER_USER_MAX) return;
    this.#end([...keys].slice(0, keys.size - KEYS_PER_USER_MAX + 1));
  }

  #end(accessKeys: readonly string[]): void {
    for (const accessKey of accessKeys) {
      const found = this.#active.get(accessKey);
      if (found !== undefined) this.#forget(accessKey, found.session);
    }
    this.#writeEnd(accessKeys);
  }

  // The keys have ended in this process. If the write fails, a restart reads them again, and then the feed ends them.
  #writeEnd(accessKeys: readonly string[]): void {
    this.#journal.append({ ended: [...accessKeys] }).catch((error: unknown) => {
      this.#options.log.error("the end of session keys could not be stored", { error });
    });
  }

  #forget(accessKey: string, session: StoredSession): void {
    this.#active.delete(accessKey);
    const user = nameUser(session);
    const keys = this.#byUser.get(user);
    keys?.delete(accessKey);
    if (keys?.size === 0) this.#byUser.delete(user);
  }

  *#listStored(): Generator<StoredSession> {
    for (const { session } of this.#active.values()) yield session;
  }
}

function nameUser({ issuer, sub }: { issuer: string; sub: string }): string {
  return `${issuer} ${sub}`;
}

function createAccessKey(): string {
  const text = Array.from(randomBytes(16), (byte) => KEY_ALPHABET[byte & 31]).join("");
  return `${KEY_PREFIX}${text}`;
}

function scalar(
  type: "counter" | "gauge",
  name: string,
  help: string,
  value: number,
): MetricFamily {
  return { type, name, help, samples: [{ labels: [], value }] };
}
