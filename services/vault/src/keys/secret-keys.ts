// Named keys in a secret service (KV v2): read at the start and in intervals, cached in memory.
import type { Logger } from "@platform/kernel/log";
import { type SecretService, SecretServiceError } from "@platform/kernel/secret-service";
import type { Clock } from "@platform/kernel/time";
import { StoreError } from "../model/store-error.ts";
import { readSecretKey } from "./master-key.ts";
import {
  digestKey,
  type KeyVersion,
  matchesDigest,
  type NamedKeyRecord,
} from "./sealed-content.ts";

/** Options of {@link SecretKeys}. */
export interface SecretKeysOptions {
  service: SecretService;
  mount: string;
  /** Folder of the keys; their names follow. */
  path: string;
  /** Time for which a key serves after it was read last. */
  cacheMs: number;
  clock: Clock;
  log: Logger;
}

/** Longest time between two looks at the token. */
const TOKEN_LOOK_MS_MAX = 60_000;
/** Shortest one: half of the life of a token that lives a second. */
const TOKEN_LOOK_MS_MIN = 500;
/** Time until a token that was refused, or could not be renewed, is looked up again. */
const TOKEN_RETRY_MS = 5_000;

interface CachedKey {
  key: Buffer;
  readMs: number;
}

/** The keys, by the ids of their versions. */
export class SecretKeys {
  readonly #options: SecretKeysOptions;
  readonly #cached = new Map<string, CachedKey>();
  /** Monotonic; 0 if the token is looked up next, undefined if it has no end. */
  #renewAtMs: number | undefined = 0;
  #renewing: Promise<void> | undefined;
  #keyFault: string | undefined;
  #tokenFault: string | undefined;
  #noted: string | undefined;

  constructor(options: SecretKeysOptions) {
    this.#options = options;
  }

  /** The reason why a key could not be read, or the token not be renewed; undefined if all could. */
  get fault(): string | undefined {
    return this.#keyFault ?? this.#tokenFault;
  }

  /** The key of a version. Throws `ServiceUnavailable` if it was never read, or too long ago. */
  require(id: string): Buffer {
    const found = this.#cached.get(id);
    const { clock, cacheMs } = this.#options;
    if (found !== undefined && clock.monotonicMs() - found.readMs <= cacheMs) return found.key;
    throw new StoreError(
      "ServiceUnavailable",
      "The key of this object is in a secret service, which cannot be reached. Try again.",
    );
  }

  /** True if a version can be used now. */
  isThere(id: string): boolean {
    try {
      return this.require(id).length > 0;
    } catch {
      return false;
    }
  }

  /** Reads the present version of a key. Throws a StoreError for a missing or invalid one. */
  async read(name: string, version: Pick<KeyVersion, "id" | "createdMs">): Promise<KeyVersion> {
    const { mount, path } = this.#options;
    const place = `${mount}/${path}/${name}`;
    const found = await this.#send(name);
    if (found === undefined)
      throw new StoreError("InvalidRequest", `The secret ${place} does not exist.`);
    const key = this.#parse(found.data, place);
    this.#keep(version.id, key);
    return { ...version, secret: { version: found.version, check: digestKey(key) } };
  }

  /** Reads all versions again. Those that cannot be read serve until the end of their time. */
  async load(keys: readonly NamedKeyRecord[]): Promise<void> {
    const ids = new Set<string>();
    let fault: string | undefined;
    for (const { name, source, versions } of keys) {
      if (source !== "secret_service") continue;
      for (const version of versions) {
        ids.add(version.id);
        const reason = await this.#loadVersion(name, version);
        fault ??= reason;
      }
    }
    for (const id of this.#cached.keys()) if (!ids.has(id)) this.#cached.delete(id);
    // A token that is refused may be replaced by one with another life.
    if (fault !== undefined) this.#renewAtMs = 0;
    this.#keyFault = fault;
    if (fault === undefined) await this.#renewToken();
    this.#note();
  }

  /** Renews the token in time, however short its life is, until the returned function is called. */
  followToken(): () => void {
    let timer: NodeJS.Timeout | undefined;
    let isStopped = false;
    const look = async (): Promise<void> => {
      await this.#renewToken();
      this.#note();
      wait();
    };
    const wait = (): void => {
      if (!isStopped) timer = setTimeout(() => void look(), this.#nextLookMs).unref();
    };
    wait();
    return () => {
      isStopped = true;
      clearTimeout(timer);
    };
  }

  get #nextLookMs(): number {
    if (this.#renewAtMs === undefined) return TOKEN_LOOK_MS_MAX;
    if (this.#renewAtMs === 0) return TOKEN_RETRY_MS;
    const waitMs = this.#renewAtMs - this.#options.clock.monotonicMs();
    return Math.min(TOKEN_LOOK_MS_MAX, Math.max(TOKEN_LOOK_MS_MIN, waitMs));
  }

  async #loadVersion(name: string, { id, secret }: KeyVersion): Promise<string | undefined> {
    const { mount, path } = this.#options;
    const place = `${mount}/${path}/${name}`;
    if (secret === undefined) return undefined;
    try {
      const found = await this.#send(name, secret.version);
      if (found === undefined) return `version ${secret.version} of ${place} does not exist`;
      if (found.version !== secret.version)
        return `${place} was read in version ${found.version} instead of ${secret.version}`;
      const key = this.#parse(found.data, place);
      if (!matchesDigest(key, secret.check))
        return `version ${secret.version} of ${place} is another key than before`;
      this.#keep(id, key);
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  async #send(name: string, version?: number) {
    const { service, mount, path } = this.#options;
    try {
      return await service.read(mount, `${path}/${name}`, version);
    } catch (error) {
      if (!(error instanceof SecretServiceError)) throw error;
      const text = `The secret service cannot be used: ${error.message}`;
      throw new StoreError("ServiceUnavailable", text, {}, { cause: error });
    }
  }

  #parse(data: Readonly<Record<string, string>>, place: string): Buffer {
    try {
      return readSecretKey(data, place);
    } catch (error) {
      throw new StoreError("InvalidRequest", (error as Error).message);
    }
  }

  #keep(id: string, key: Buffer): void {
    this.#cached.set(id, { key, readMs: this.#options.clock.monotonicMs() });
  }

  // A token with an end is renewed after half of its life, also if only the master key is in the service.
  async #renewToken(): Promise<void> {
    const { clock } = this.#options;
    if (this.#renewAtMs === undefined || clock.monotonicMs() < this.#renewAtMs) return;
    this.#renewing ??= this.#renewNow().finally(() => {
      this.#renewing = undefined;
    });
    await this.#renewing;
  }

  async #renewNow(): Promise<void> {
    const { service, clock } = this.#options;
    try {
      if (this.#renewAtMs !== 0) await service.renewToken();
      const now = clock.monotonicMs();
      const { isRenewable, ttlSeconds } = await service.readToken();
      this.#renewAtMs = isRenewable && ttlSeconds > 0 ? now + ttlSeconds * 500 : undefined;
      this.#tokenFault = undefined;
    } catch (error) {
      // It may have been replaced: the next one is looked up first.
      this.#renewAtMs = 0;
      this.#tokenFault = `the token cannot be renewed: ${(error as Error).message}`;
    }
  }

  #note(): void {
    const { log } = this.#options;
    const { fault } = this;
    if (fault !== undefined && fault !== this.#noted)
      log.warn("keys of the secret service cannot be read", { reason: fault });
    if (fault === undefined && this.#noted !== undefined)
      log.info("keys of the secret service were read again");
    this.#noted = fault;
  }
}
