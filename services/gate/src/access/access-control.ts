// API keys of tenants, revoked users and the global policy: on disk first, then active in every worker, then answered.
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import { z } from "zod";
import {
  type AccessChange,
  type EndedSessions,
  EndedSessionSet,
  POLICY_DEFAULT,
  type PolicySpec,
} from "../shared-state/index.ts";
import { type ApiKeyRecord, apiKeySchema, makeRoom, toKeySpec } from "./api-key-record.ts";
import { CookieKeys, cookieKeysSchema } from "./cookie-keys.ts";
import { endedSessionsSchema } from "./ended-session-record.ts";
import type { FolderLock } from "./folder-lock.ts";
import { advancePolicy, type PolicyReload, policySchema } from "./policy-record.ts";
import { RevokedUsers, revokedUsersSchema } from "./revoked-users.ts";
import {
  listEntries,
  mergeEntries,
  type OwnEntries,
  type SharedEntries,
} from "./shared-entries.ts";
import { createEphemeralState, createStateFile, type StateFile } from "./state-file.ts";

const KEY_BYTES = 32;
const ID_BYTES = 9;
/** Marks keys, so that scanners find them in logs and repositories. */
const KEY_PREFIX = "pgk_";

/** Settings of a new key. */
export interface NewApiKey {
  tenant: string;
  name: string;
  rateLimitRpm: number | null;
  routes: readonly string[];
}

/** Options of {@link AccessControl}. */
export interface AccessControlOptions {
  /** Folder of the state; created at the first change. */
  folder: string;
  /** Keeps changes in memory only. */
  isEphemeral: boolean;
  lock: FolderLock;
  /** Configured keys of sealed cookies; undefined: one is generated and stored. */
  cookieKeys?: readonly Uint8Array[] | undefined;
  clock: Clock;
  log: Logger;
  /** Runs work between two changes of the workers. */
  runExclusive: <T>(work: () => Promise<T>) => Promise<T>;
  /** Sends a change to every worker; resolves when all of them have applied it. */
  apply: (change: AccessChange) => Promise<void>;
}

/** API keys, revoked users and the global policy of a gateway. */
export class AccessControl {
  readonly #options: AccessControlOptions;
  readonly #keysFile: StateFile<ApiKeyRecord[]>;
  readonly #policyFile: StateFile<PolicySpec>;
  readonly #endedFile: StateFile<EndedSessions[]>;
  readonly #keys = new Map<string, ApiKeyRecord>();
  readonly #revoked: RevokedUsers;
  readonly #ended = new EndedSessionSet();
  readonly #cookieKeys: CookieKeys;
  #policy: PolicySpec = POLICY_DEFAULT;
  #publish: (entries: Partial<SharedEntries>) => Promise<void> = () => Promise.resolve();
  /** The folder is locked, and was read after that. */
  #isLocked = false;

  constructor(options: AccessControlOptions) {
    this.#options = options;
    const open = <T>(name: string, schema: z.ZodType<T>): StateFile<T> => {
      const warn = (fault: string): void => options.log.warn("state repaired", { fault });
      const onRepair = options.isEphemeral ? undefined : warn;
      const file = createStateFile(join(options.folder, name), schema, onRepair);
      return options.isEphemeral ? createEphemeralState(file) : file;
    };
    this.#keysFile = open("api-keys.json", z.array(apiKeySchema));
    this.#revoked = new RevokedUsers(open("revoked-users.json", revokedUsersSchema), options.log);
    this.#endedFile = open("ended-sessions.json", endedSessionsSchema);
    const cookieKeysFile = open("cookie-keys.json", cookieKeysSchema);
    this.#cookieKeys = new CookieKeys(cookieKeysFile, options.cookieKeys);
    this.#policyFile = open("policy.json", policySchema);
  }

  /** Reads the stored state. Throws an Error that names a damaged file. */
  async load(): Promise<void> {
    const keys = (await this.#keysFile.read()) ?? [];
    const ended = (await this.#endedFile.read()) ?? [];
    this.#policy = (await this.#policyFile.read()) ?? POLICY_DEFAULT;
    await this.#cookieKeys.load();
    await this.#revoked.load();
    replaceKeys(this.#keys, keys);
    this.#ended.clear();
    this.#ended.add(ended);
  }

  /** Calls `publish` with each change that other gateways take over; it never rejects. */
  onChange(publish: (entries: Partial<SharedEntries>) => Promise<void>): void {
    this.#publish = publish;
  }

  /** Releases the folder for another process. */
  close(): void {
    this.#options.lock.release();
  }

  /** Keys of sealed cookies: the first seals, all of them open. */
  get cookieKeys(): readonly Uint8Array[] {
    return this.#cookieKeys.keys;
  }

  /** Stores a generated cookie key before its first use, so that sessions survive a restart. */
  async keepCookieKeys(): Promise<void> {
    if (this.#cookieKeys.isStored) return;
    await this.#change("cookie key stored", {}, () => this.#cookieKeys.store());
  }

  /** Everything, for a new worker. */
  list(): AccessChange {
    return {
      keys: this.listKeys().flatMap((key) => (key.revoked_at === null ? [toKeySpec(key)] : [])),
      revokedUsers: this.#revoked.list(),
      policy: this.#policy,
      endedSessions: this.#ended.list(),
    };
  }

  /** All keys, the oldest first; revoked ones included. */
  listKeys(): ApiKeyRecord[] {
    return [...this.#keys.values()];
  }

  /** Returns a key; throws `not_found`. */
  getKey(id: string): ApiKeyRecord {
    const key = this.#keys.get(id);
    if (key === undefined) throw new PlatformError("not_found", `API key ${id} does not exist`);
    return key;
  }

  /** Creates a key; `plain` is not stored and cannot be shown again. */
  createKey(wanted: NewApiKey, caller: string): Promise<{ record: ApiKeyRecord; plain: string }> {
    const plain = `${KEY_PREFIX}${randomBytes(KEY_BYTES).toString("base64url")}`;
    const record: ApiKeyRecord = {
      id: randomBytes(ID_BYTES).toString("base64url"),
      tenant: wanted.tenant,
      name: wanted.name,
      hash: createHash("sha256").update(plain).digest("hex"),
      rate_limit_rpm: wanted.rateLimitRpm,
      routes: [...wanted.routes],
      created_at: new Date(this.#options.clock.now()).toISOString(),
      revoked_at: null,
    };
    return this.#change(
      "API key created",
      { caller, id: record.id, tenant: record.tenant },
      async () => {
        const kept = makeRoom(this.listKeys());
        await this.#keysFile.write([...kept, record]);
        replaceKeys(this.#keys, [...kept, record]);
        await this.#options.apply({ keys: [toKeySpec(record)] });
        await this.#publish({ keys: [JSON.stringify(record)] });
        return { record, plain };
      },
    );
  }

  /** Revokes a key and ends its streams; throws `not_found`. */
  revokeKey(id: string, caller: string): Promise<ApiKeyRecord> {
    return this.#change("API key revoked", { caller, id }, async () => {
      const key = this.getKey(id);
      if (key.revoked_at !== null) return key;
      const revoked = { ...key, revoked_at: new Date(this.#options.clock.now()).toISOString() };
      const keys = this.listKeys().map((each) => (each.id === id ? revoked : each));
      await this.#keysFile.write(keys);
      replaceKeys(this.#keys, keys);
      await this.#options.apply({ removedKeys: [id] });
      await this.#publish({
        removedKeys: [{ id, revokedAtMs: this.#options.clock.now() }],
      });
      return revoked;
    });
  }

  /** Invalidates the tokens that the user holds now, and ends the streams that they opened. */
  revokeUser(user: string, caller: string): Promise<void> {
    return this.#change("user revoked", { caller, user }, async () => {
      const revokedUsers = [{ user, revokedAt: Math.floor(this.#options.clock.now() / 1_000) }];
      await this.#revoked.add(revokedUsers);
      await this.#options.apply({ revokedUsers });
      await this.#publish({ revokedUsers });
    });
  }

  /** Ends sessions of browsers, and the streams that they opened; `by` is for the audit log. */
  endSessions(ended: EndedSessions, by: "provider" | "user"): Promise<void> {
    const { client, sub = "", sid = "" } = ended;
    return this.#change(`sessions ended by their ${by}`, { client, sub, sid }, async () => {
      this.#ended.add([ended]);
      await this.#endedFile.write(this.#ended.list());
      await this.#options.apply({ endedSessions: [ended] });
      await this.#publish({ endedSessions: [ended] });
    });
  }

  /** Raises the policy version and replaces the rules if new ones are given. Throws `conflict` for a lower version that is not meant. */
  reloadPolicy(reload: PolicyReload, caller: string): Promise<PolicySpec> {
    return this.#change("policy reloaded", { caller }, async () => {
      const now = Math.floor(this.#options.clock.now() / 1_000);
      const policy = advancePolicy(this.#policy, reload, now);
      await this.#policyFile.write(policy);
      this.#policy = policy;
      await this.#options.apply({ policy });
      await this.#publish({ policy: JSON.stringify(policy) });
      return policy;
    });
  }

  /** Entries for the other gateways. */
  listShared(): SharedEntries {
    return listEntries(this.#readOwn());
  }

  /** Takes over entries of other gateways. */
  async mergeShared(entries: SharedEntries): Promise<void> {
    const merge = () => mergeEntries(this.#readOwn(), entries);
    if (merge() === undefined) return;
    await this.#options.runExclusive(async () => {
      await this.#tryStore(() => this.#lock());
      const merged = merge();
      if (merged === undefined) return;
      const { keys, change, skipped } = merged;
      const { removedKeys = [], revokedUsers = [], endedSessions = [], policy } = change;
      replaceKeys(this.#keys, keys);
      this.#revoked.takeOver(revokedUsers);
      this.#ended.add(endedSessions);
      await this.#tryStore(() => this.#keysFile.write(this.listKeys()));
      await this.#tryStore(() => this.#revoked.store());
      if (endedSessions.length > 0) {
        await this.#tryStore(() => this.#endedFile.write(this.#ended.list()));
      }
      if (policy !== undefined) {
        this.#policy = policy;
        await this.#tryStore(() => this.#policyFile.write(policy));
      }
      await this.#options.apply(change);
      this.#options.log.info("changes of other gateways were taken over", {
        audit: true,
        keys: change.keys?.length ?? 0,
        removed_keys: removedKeys.length,
        revoked_users: revokedUsers.length,
        ended_sessions: endedSessions.length,
        skipped,
        ...(policy === undefined ? {} : { policy_version: policy.version }),
      });
    });
  }

  #readOwn(): OwnEntries {
    const { times: revokedUsers } = this.#revoked;
    return { keys: this.#keys, revokedUsers, endedSessions: this.#ended, policy: this.#policy };
  }

  // An entry of another gateway applies even if it cannot be stored here.
  async #tryStore(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#options.log.warn("entries of other gateways apply, but would be lost on a restart", {
        error: error instanceof Error ? error.message : String(error),
      });
    }
  }

  #change<T>(what: string, fields: Record<string, string>, work: () => Promise<T>): Promise<T> {
    return this.#options.runExclusive(async () => {
      await this.#lock();
      const result = await work();
      this.#options.log.info(what, { audit: true, ...fields });
      return result;
    });
  }

  // Another process may have written between the start of this one and the lock.
  async #lock(): Promise<void> {
    const { isEphemeral, lock } = this.#options;
    if (isEphemeral || this.#isLocked) return;
    await lock.take();
    this.#isLocked = true;
    await this.load();
    await this.#options.apply(this.list());
  }
}

function replaceKeys(held: Map<string, ApiKeyRecord>, keys: readonly ApiKeyRecord[]): void {
  held.clear();
  for (const key of keys) held.set(key.id, key);
}
