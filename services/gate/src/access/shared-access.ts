// API keys, revoked users, ended sessions and the global policy of all gateways that use one Redis: each gateway merges them into its own state on disk.
import type { Logger } from "@platform/kernel/log";
import type { Collector, MetricFamily } from "@platform/kernel/metrics";
import { type Clock, every, type RepeatingTimer } from "@platform/kernel/time";
import { z } from "zod";
import { RedisClient, type RedisReply } from "@platform/redis";
import type { EndedSessions, PolicySpec } from "../shared-state/index.ts";
import type { SharedEntries } from "./shared-entries.ts";

/** Options of {@link SharedAccess}. */
export interface SharedAccessOptions {
  /** URL of Redis now; undefined: this gateway shares nothing. */
  readUrl: () => string | undefined;
  /** All entries of this gateway. */
  list: () => SharedEntries;
  /** Takes over the entries of all gateways. */
  merge: (entries: SharedEntries) => Promise<void>;
  clock: Clock;
  log: Logger;
}

/** A change of another gateway applies after this time at the latest. */
const INTERVAL_MS = 500;
const DEADLINE_MS = 2_000;
/** Longest wait for the entries of other gateways at the start. */
const START_MS = 2_000;
const START_CHECK_MS = 20;
/** Age of the last successful read from which readiness shows a warning. */
const LATE_MS = 10_000;
const PUSH_ENTRIES = 200;
const SCAN_ENTRIES = 100;
/** Steps of one scan; beyond it the server is not sane. */
const SCAN_STEPS_MAX = 10_000;
const PREFIX = "{platform:gate:access}:";
const VERSION = `${PREFIX}version`;
const KEYS = `${PREFIX}keys`;
const REMOVED = `${PREFIX}revoked-keys`;
const USERS = `${PREFIX}revoked-users`;
const POLICY = `${PREFIX}policy`;
const ENDED = `${PREFIX}ended-sessions`;
/** Ended sessions are kept so long: longer than browsers keep cookies without new sign-ins. */
const ENDED_KEPT_S = 34_560_000;

/**
 * Merges entries atomically: a revocation is never undone, whatever the order of changes, and the policy with the highest
 * generation and version stays, of several the one that was loaded last. Revoked keys are only an ID.
 * The version begins with the time, so that it also rises after the loss of all data. Returns the version.
 */
const SCRIPT = `
local input = cjson.decode(ARGV[1])
local changed = 0
for _, entry in ipairs(input.removed) do
  changed = changed + redis.call('ZADD', KEYS[3], 'NX', entry[2], entry[1])
  redis.call('HDEL', KEYS[2], entry[1])
end
for _, entry in ipairs(input.keys) do
  if not redis.call('ZSCORE', KEYS[3], entry[1]) and redis.call('HLEN', KEYS[2]) < 20000 then
    changed = changed + redis.call('HSETNX', KEYS[2], entry[1], entry[2])
  end
end
for _, entry in ipairs(input.users) do
  changed = changed + redis.call('ZADD', KEYS[4], 'GT', 'CH', entry[2], entry[1])
end
local oldest = tonumber(redis.call('TIME')[1]) - tonumber(input.keptSeconds)
for _, entry in ipairs(input.ended) do
  if tonumber(entry[2]) > oldest then
    changed = changed + redis.call('ZADD', KEYS[6], 'GT', 'CH', entry[2], entry[1])
  end
end
if input.policy then
  local sent = input.policy
  local held = redis.call('HMGET', KEYS[5], 'version', 'reloaded_at', 'text', 'generation')
  local order = tonumber(sent.generation) - tonumber(held[4] or 0)
  if order == 0 then order = held[1] and tonumber(sent.version) - tonumber(held[1]) or 1 end
  if order == 0 then order = tonumber(sent.reloadedAt) - tonumber(held[2]) end
  if order > 0 or order == 0 and sent.text > held[3] then
    redis.call('HSET', KEYS[5], 'version', sent.version, 'reloaded_at', sent.reloadedAt, 'text', sent.text, 'generation', sent.generation)
    changed = changed + 1
  end
end
redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -100001)
redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -20001)
redis.call('ZREMRANGEBYRANK', KEYS[6], 0, -20001)
redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', oldest)
if changed > 0 or redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('SET', KEYS[1], redis.call('TIME')[1] .. '000', 'NX')
  redis.call('INCR', KEYS[1])
end
return redis.call('GET', KEYS[1])`;

const endedNames = z.tuple([z.string(), z.string().nullable(), z.string().nullable()]);
const NO_ENTRIES: SharedEntries = {
  keys: [],
  removedKeys: [],
  revokedUsers: [],
  endedSessions: [],
  policy: undefined,
};

/** The shared entries. While Redis is not available, the gateway continues with those that it has. */
export class SharedAccess implements Collector {
  readonly name = "shared_access";
  readonly #options: SharedAccessOptions;
  #redis: RedisClient | undefined;
  #url: string | undefined;
  #timer: RepeatingTimer | undefined;
  /** Version that was merged last. */
  #seen: string | undefined;
  /** Redis may lack entries of this gateway. */
  #isUnsent = true;
  #hasFailed = false;
  #failures = 0;
  #startedMs = 0;
  #readAtMs: number | undefined;

  constructor(options: SharedAccessOptions) {
    this.#options = options;
  }

  /** Begins to share; resolves when the entries of the other gateways are merged, or when Redis is not available. */
  async start(): Promise<void> {
    const { clock } = this.#options;
    this.#startedMs = clock.monotonicMs();
    this.#timer = every(
      INTERVAL_MS,
      () => this.#sync(),
      (error) => this.#noteFailure(error),
    );
    this.#connect();
    while (this.#redis !== undefined && clock.monotonicMs() - this.#startedMs < START_MS) {
      if (this.#redis.isReady) await this.#timer.run();
      if (this.#readAtMs !== undefined || this.#hasFailed) return;
      await new Promise((resolve) => setTimeout(resolve, START_CHECK_MS));
    }
  }

  /** Stops; resolves when the exchange in flight has ended. */
  async stop(): Promise<void> {
    await this.#timer?.stop();
    this.#redis?.close();
  }

  /** Sends a change of this gateway. Never rejects: what cannot be sent now is sent when Redis is available again. */
  async publish(entries: Partial<SharedEntries>): Promise<void> {
    this.#connect();
    if (this.#redis === undefined) return;
    try {
      const version = await this.#push({ ...NO_ENTRIES, ...entries });
      const isNext = this.#seen !== undefined && Number(version) === Number(this.#seen) + 1;
      if (isNext) this.#seen = version;
    } catch (error) {
      this.#isUnsent = true;
      this.#noteFailure(error);
    }
  }

  /** The warning of `/readyz`; undefined while entries are shared, or need not be. */
  describe(): string | undefined {
    const ageMs = this.#readAgeMs();
    if (this.#redis === undefined || ageMs < LATE_MS) return undefined;
    return `API keys and revocations have not been shared for ${Math.floor(ageMs / 1_000)} s`;
  }

  collect(): MetricFamily[] {
    if (this.#redis === undefined) return [];
    return [
      {
        type: "gauge",
        name: "platform_gate_access_shared_age_seconds",
        help: "Time since API keys and revocations of other gateways were last read from Redis.",
        samples: [{ labels: [], value: this.#readAgeMs() / 1_000 }],
      },
      {
        type: "counter",
        name: "platform_gate_access_share_failures_total",
        help: "Failed exchanges of API keys and revocations with Redis.",
        samples: [{ labels: [], value: this.#failures }],
      },
    ];
  }

  #readAgeMs(): number {
    return this.#options.clock.monotonicMs() - (this.#readAtMs ?? this.#startedMs);
  }

  #connect(): void {
    const url = this.#options.readUrl();
    if (url === this.#url) return;
    this.#redis?.close();
    this.#url = url;
    this.#seen = undefined;
    this.#isUnsent = true;
    this.#redis =
      url === undefined
        ? undefined
        : new RedisClient({
            url,
            onFailure: (error) => {
              // Redis may come back without its data.
              this.#isUnsent = true;
              this.#noteFailure(error);
            },
            onRecovery: () => undefined,
          });
  }

  async #sync(): Promise<void> {
    this.#connect();
    if (this.#redis?.isReady !== true) return;
    const version = await this.#send("GET", VERSION);
    if (this.#isUnsent || version === null || version !== this.#seen) await this.#exchange(version);
    this.#noteSuccess();
  }

  async #exchange(found: RedisReply): Promise<void> {
    let version = String(found);
    if (this.#isUnsent || found === null || Number(found) < Number(this.#seen ?? 0)) {
      this.#isUnsent = false;
      try {
        for (const part of split(this.#options.list())) version = await this.#push(part);
      } catch (error) {
        this.#isUnsent = true;
        throw error;
      }
    }
    await this.#options.merge({
      keys: (await this.#scan("HSCAN", KEYS)).map(([, record]) => record),
      removedKeys: (await this.#scan("ZSCAN", REMOVED)).map(([id, atMs]) => ({
        id,
        revokedAtMs: Number(atMs),
      })),
      revokedUsers: (await this.#scan("ZSCAN", USERS)).map(([user, at]) => ({
        user,
        revokedAt: Number(at),
      })),
      endedSessions: (await this.#scan("ZSCAN", ENDED)).flatMap(([text, endedAt]) =>
        readEnded(text, Number(endedAt)),
      ),
      policy: (await this.#send("HGET", POLICY, "text"))?.toString(),
    });
    // Changes after the read of the version are merged by the next exchange.
    this.#seen = version;
  }

  async #push(entries: SharedEntries): Promise<string> {
    const { keys, removedKeys, revokedUsers, endedSessions, policy } = entries;
    const input = JSON.stringify({
      keys: keys.map((record) => [readId(record), record]),
      removed: removedKeys.map(({ id, revokedAtMs }) => [id, String(revokedAtMs)]),
      users: revokedUsers.map(({ user, revokedAt }) => [user, String(revokedAt)]),
      ended: endedSessions.map((ended) => [describeEnded(ended), String(ended.endedAt)]),
      keptSeconds: String(ENDED_KEPT_S),
      ...(policy === undefined ? {} : { policy: describePolicy(policy) }),
    });
    const names = [VERSION, KEYS, REMOVED, USERS, POLICY, ENDED];
    return String(await this.#send("EVAL", SCRIPT, String(names.length), ...names, input));
  }

  async #scan(command: string, key: string): Promise<[member: string, value: string][]> {
    const found = new Map<string, string>();
    let cursor = "0";
    for (let step = 0; step < SCAN_STEPS_MAX; step++) {
      const reply = await this.#send(command, key, cursor, "COUNT", String(SCAN_ENTRIES));
      const [next, list] = Array.isArray(reply) ? reply : [];
      if (typeof next !== "string" || !Array.isArray(list)) {
        throw new Error(`Redis sent an unknown reply to ${command}`);
      }
      for (let at = 0; at + 1 < list.length; at += 2) {
        found.set(String(list[at]), String(list[at + 1]));
      }
      cursor = next;
      if (cursor === "0") return [...found];
    }
    throw new Error(`Redis did not end ${command}`);
  }

  async #send(...words: string[]): Promise<RedisReply> {
    const redis = this.#redis;
    if (redis === undefined) throw new Error("Redis is not configured");
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new Error(`no reply within ${DEADLINE_MS} ms`)),
      DEADLINE_MS,
    );
    try {
      return await Promise.race([redis.send(...words), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  #noteSuccess(): void {
    this.#readAtMs = this.#options.clock.monotonicMs();
    if (!this.#hasFailed) return;
    this.#hasFailed = false;
    this.#options.log.info("API keys and revocations are shared again");
  }

  #noteFailure(error: unknown): void {
    this.#failures++;
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#options.log.warn(
      "API keys and revocations are not shared: Redis is not available; the gateway continues with those it has",
      { error: error instanceof Error ? error.message : String(error) },
    );
  }
}

function readId(record: string): string {
  return (JSON.parse(record) as { id: string }).id;
}

function describePolicy(text: string): Record<string, string> {
  const { version, generation = 0, reloadedAt } = JSON.parse(text) as PolicySpec;
  const numbers = { version, generation, reloadedAt };
  const texts = Object.entries(numbers).map(([name, value]) => [name, String(value)]);
  return { ...(Object.fromEntries(texts) as Record<string, string>), text };
}

function describeEnded({ client, sid, sub }: EndedSessions): string {
  return JSON.stringify([client, sid ?? null, sub ?? null]);
}

/** An entry of Redis; empty if it is malformed. */
function readEnded(text: string, endedAt: number): EndedSessions[] {
  try {
    const { data } = endedNames.safeParse(JSON.parse(text));
    if (data === undefined) return [];
    const [client, sid, sub] = data;
    return [{ client, sid: sid ?? undefined, sub: sub ?? undefined, endedAt }];
  } catch {
    return [];
  }
}

/** Parts of a bounded size; at least one. */
function* split(entries: SharedEntries): Generator<SharedEntries> {
  const { keys, removedKeys, revokedUsers, endedSessions, policy } = entries;
  const lists = [keys, removedKeys, revokedUsers, endedSessions];
  const count = Math.max(1, ...lists.map(({ length }) => length));
  for (let at = 0; at < count; at += PUSH_ENTRIES) {
    const end = at + PUSH_ENTRIES;
    yield {
      keys: keys.slice(at, end),
      removedKeys: removedKeys.slice(at, end),
      revokedUsers: revokedUsers.slice(at, end),
      endedSessions: endedSessions.slice(at, end),
      policy: at === 0 ? policy : undefined,
    };
  }
}
