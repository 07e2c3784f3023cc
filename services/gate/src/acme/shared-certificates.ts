// Automatic certificates of several gateways through Redis: one orders, all answer its challenges, and all get what it obtains.
// Contents are sealed under keys that the gateways share.
import type { Logger } from "@platform/kernel/log";
import type { SecretBox } from "@platform/kernel/secrets";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { RedisClient, type RedisReply } from "@platform/redis";
import { z } from "zod";
import type { StoredCertificate } from "./acme-files.ts";
import type { Proof } from "./order.ts";
import { rankCertificate } from "./renewal-time.ts";

/** Options of {@link SharedCertificates}. */
export interface SharedCertificatesOptions {
  url: string;
  /** Tells the state of one directory from that of others. */
  scope: string;
  /** ID of this gateway, new at each start. */
  gateway: string;
  box: SecretBox;
  /** Answers the challenges of other gateways; resolves when all workers do. */
  setProofs: (proofs: readonly Proof[]) => Promise<void>;
  /** Uses a certificate if it is newer than the own one. */
  adopt: (certificate: StoredCertificate) => Promise<void>;
  /** Certificates of this gateway. */
  list: () => readonly StoredCertificate[];
  log: Logger;
}

/** The right to order the certificate of a name. */
export interface Lease {
  release: () => Promise<void>;
}

const TICK_MS = 500;
const DEADLINE_MS = 2_000;
/** Longest wait for Redis after the start. */
const START_MS = 5_000;
const START_CHECK_MS = 20;
/** Longer than an order may take. */
const LOCK_MS = 600_000;
/** Gateways that have not been heard of for longer are not waited for. */
const ALIVE_S = 5;
const FORGOTTEN_S = 60;
const ANSWERS_MS = 10_000;
const PROOF_S = 600;
const CERTIFICATES_MAX = 10_000;

const proofSchema = z.strictObject({
  type: z.enum(["tls-alpn-01", "http-01"]),
  name: z.string(),
  token: z.string(),
  keyAuthorization: z.string(),
});
const certificateSchema = z.strictObject({
  name: z.string(),
  certPem: z.string(),
  keyPem: z.string(),
  isAsked: z.boolean(),
});

/** Notes what a gateway has applied; returns the version. Keys: version, seen. */
const SYNC = `
local now = tonumber(redis.call('TIME')[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2] .. ' ' .. now)
for _, id in ipairs(redis.call('HKEYS', KEYS[2])) do
  local at = tonumber(string.match(redis.call('HGET', KEYS[2], id), '%d+$'))
  if at < now - ${FORGOTTEN_S} then redis.call('HDEL', KEYS[2], id) end
end
return redis.call('GET', KEYS[1]) or '0'`;
/** Number of living gateways that have not applied a version. Keys: seen. */
const WAITING = `
local now = tonumber(redis.call('TIME')[1])
local waiting = 0
local all = redis.call('HGETALL', KEYS[1])
for at = 2, #all, 2 do
  local version, time = string.match(all[at], '^(%d+) (%d+)$')
  if tonumber(time) >= now - ${ALIVE_S} and tonumber(version) < tonumber(ARGV[1]) then
    waiting = waiting + 1
  end
end
return waiting`;
/** Stores a certificate unless a newer one is there. Keys: certificates, times, version. */
const STORE = `
local held = redis.call('HGET', KEYS[2], ARGV[1])
if held and tonumber(held) >= tonumber(ARGV[2]) then return 0 end
if not held and redis.call('HLEN', KEYS[2]) >= ${CERTIFICATES_MAX} then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return redis.call('INCR', KEYS[3])`;
/** Adds or, without a value, removes a proof; drops those of gateways that have ended. Keys: proofs, version. */
const PROOF = `
local now = tonumber(redis.call('TIME')[1])
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  local at = tonumber(string.match(redis.call('HGET', KEYS[1], field), '^%d+'))
  if at < now - ${PROOF_S} then redis.call('HDEL', KEYS[1], field) end
end
if ARGV[2] == '' then redis.call('HDEL', KEYS[1], ARGV[1])
else redis.call('HSET', KEYS[1], ARGV[1], now .. ' ' .. ARGV[2]) end
return redis.call('INCR', KEYS[2])`;
/** Removes a lock of its holder. Keys: lock. */
const RELEASE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** The shared state of one directory. While Redis is not available, each gateway orders for itself. */
export class SharedCertificates {
  readonly #options: SharedCertificatesOptions;
  readonly #redis: RedisClient;
  readonly #prefix: string;
  #seen = "0";
  #reading: Promise<void> = Promise.resolve();
  #isUnsent = true;
  #hasFailed = false;
  #timer: RepeatingTimer | undefined;
  readonly #startedMs = performance.now();

  constructor(options: SharedCertificatesOptions) {
    this.#options = options;
    this.#prefix = `{platform:gate:acme}:${options.scope}:`;
    this.#redis = new RedisClient({
      url: options.url,
      onFailure: (error) => {
        // Redis may come back without its data.
        this.#isUnsent = true;
        this.#seen = "0";
        this.#noteFailure(error);
      },
      onRecovery: () => undefined,
    });
  }

  /** Begins to share. */
  start(): void {
    this.#timer = every(
      TICK_MS,
      () => this.#sync(),
      (error) => this.#noteFailure(error),
    );
    void this.#timer.run();
  }

  async stop(): Promise<void> {
    await this.#timer?.stop();
    this.#redis.close();
  }

  /**
   * The right to order a certificate, after those of other gateways were adopted: `held` if another gateway orders it. Without
   * Redis, a right that others do not know.
   */
  async lease(name: string): Promise<Lease | "held"> {
    const { gateway } = this.#options;
    const key = this.#key(`lock:${name}`);
    try {
      await this.#waitForStart();
      const fence = String(await this.#send("INCR", this.#key("fence")));
      const value = `${fence} ${gateway}`;
      const taken = await this.#send("SET", key, value, "NX", "PX", String(LOCK_MS));
      if (taken === null) return "held";
      await this.#read(String((await this.#send("GET", this.#key("version"))) ?? "0"));
      const release = async (): Promise<void> => {
        await this.#eval(RELEASE, [key], [value]).catch((error) => this.#noteFailure(error));
      };
      return { release };
    } catch (error) {
      this.#noteFailure(error);
      return { release: () => Promise.resolve() };
    }
  }

  /** Lets all gateways answer a challenge; resolves with its removal when they do. */
  async addProof(proof: Proof): Promise<() => Promise<void>> {
    const field = `${proof.type} ${proof.name} ${proof.token}`;
    const keys = [this.#key("proofs"), this.#key("version")];
    try {
      const sealed = this.#options.box.seal(JSON.stringify(proof), field);
      const version = String(await this.#eval(PROOF, keys, [field, sealed]));
      await this.#waitForOthers(version);
    } catch (error) {
      this.#noteFailure(error);
    }
    return async () => {
      await this.#eval(PROOF, keys, [field, ""]).catch((error) => this.#noteFailure(error));
    };
  }

  /** Gives a certificate to all gateways. */
  async publish(certificate: StoredCertificate): Promise<void> {
    try {
      await this.#store(certificate);
    } catch (error) {
      this.#isUnsent = true;
      this.#noteFailure(error);
    }
  }

  // Orders begin with the gateway, before it is connected.
  async #waitForStart(): Promise<void> {
    const endMs = this.#startedMs + START_MS;
    while (!this.#redis.isReady && performance.now() < endMs) {
      await new Promise((resolve) => setTimeout(resolve, START_CHECK_MS));
    }
  }

  async #waitForOthers(version: string): Promise<void> {
    const endMs = performance.now() + ANSWERS_MS;
    // Its own workers answer already.
    await this.#eval(
      SYNC,
      [this.#key("version"), this.#key("seen")],
      [this.#options.gateway, version],
    );
    while (performance.now() < endMs) {
      if (Number(await this.#eval(WAITING, [this.#key("seen")], [version])) === 0) return;
      await new Promise((resolve) => setTimeout(resolve, TICK_MS / 5));
    }
  }

  async #sync(): Promise<void> {
    if (!this.#redis.isReady) return;
    if (this.#isUnsent) {
      for (const certificate of this.#options.list()) await this.#store(certificate);
      this.#isUnsent = false;
    }
    const keys = [this.#key("version"), this.#key("seen")];
    const version = String(await this.#eval(SYNC, keys, [this.#options.gateway, this.#seen]));
    if (version !== this.#seen) {
      await this.#read(version);
      await this.#eval(SYNC, keys, [this.#options.gateway, version]);
    }
    if (this.#hasFailed) this.#options.log.info("certificates are shared again", {});
    this.#hasFailed = false;
  }

  // One after the other: a certificate is adopted once.
  #read(version: string): Promise<void> {
    const before = this.#reading.catch(() => undefined);
    this.#reading = before.then(() => this.#readOnce(version));
    return this.#reading;
  }

  async #readOnce(version: string): Promise<void> {
    const { setProofs, adopt } = this.#options;
    const proofs = await this.#readAll("proofs", proofSchema, (text) => text.replace(/^\d+ /, ""));
    await setProofs(proofs);
    for (const one of await this.#readAll("certificates", certificateSchema)) await adopt(one);
    this.#seen = version;
  }

  // Entries that other keys have sealed, or somebody has changed, are not used.
  async #readAll<T>(
    what: string,
    schema: z.ZodType<T>,
    cut = (text: string): string => text,
  ): Promise<T[]> {
    const { box, log } = this.#options;
    const reply = await this.#send("HGETALL", this.#key(what));
    const list = Array.isArray(reply) ? reply.map(String) : [];
    const read: T[] = [];
    for (let at = 0; at + 1 < list.length; at += 2) {
      const [field = "", text = ""] = [list[at], list[at + 1]];
      try {
        read.push(schema.parse(JSON.parse(box.open(cut(text), field))));
      } catch {
        log.warn("shared state of certificates cannot be opened: cookie_keys may differ", {
          field,
        });
      }
    }
    return read;
  }

  async #store(certificate: StoredCertificate): Promise<void> {
    const { name, certPem } = certificate;
    const sealed = this.#options.box.seal(JSON.stringify(certificate), name);
    const keys = ["certificates", "times", "version"].map((one) => this.#key(one));
    await this.#eval(STORE, keys, [name, String(rankCertificate(certPem)), sealed]);
  }

  #key(name: string): string {
    return `${this.#prefix}${name}`;
  }

  #eval(script: string, keys: readonly string[], words: readonly string[]): Promise<RedisReply> {
    return this.#send("EVAL", script, String(keys.length), ...keys, ...words);
  }

  async #send(...words: string[]): Promise<RedisReply> {
    if (!this.#redis.isReady) throw new Error("Redis is not available");
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      late.reject(new Error(`no reply within ${DEADLINE_MS} ms`));
    }, DEADLINE_MS);
    try {
      return await Promise.race([this.#redis.send(...words), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  #noteFailure(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#options.log.warn(
      "certificates are not shared: Redis is not available; this gateway orders for itself",
      { error: error instanceof Error ? error.message : String(error) },
    );
  }
}
