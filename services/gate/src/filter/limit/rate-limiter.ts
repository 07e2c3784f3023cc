// Rate limits: counted in Redis for all gateways if it is configured, otherwise, or while it is down, in this process.
import { createHash } from "node:crypto";
import { RedisClient, RedisScript, withDeadline } from "@platform/redis";
import type { RateKey, RateRule } from "../../exchange/rate-key.ts";
import {
  RATE_WINDOW_SECONDS,
  type MetricBlock,
  type SharedRateTable,
} from "../../shared-state/index.ts";

/** Outcome of a request. */
export interface RateVerdict {
  isAllowed: boolean;
  /** Requests left in the window. */
  remaining: number;
  /** Seconds until one more request is allowed. */
  resetSeconds: number;
}

/** Options of {@link RateLimiter}. */
export interface RateLimiterOptions {
  table: SharedRateTable;
  block: MetricBlock;
  /** Milliseconds of the clock that all workers share. */
  readNowMs: () => number;
  log: (level: "warn" | "info", msg: string, fields: Record<string, string | number>) => void;
}

/** Longest wait for Redis in the path of a request. */
const DEADLINE_MS = 50;
/** Time without Redis after it has missed the deadline, so that it does not delay every request. */
const PAUSE_MS = 1_000;
const KEY_CHARACTERS_MAX = 64;
const KEY_PREFIX = "platform:gate:rate:";

/**
 * Counts by the second of Redis' own clock, like `SharedRateTable`: a request is admitted if the 61 seconds that its
 * window touches have fewer than the limit. Returns [admitted, remaining, seconds until one more is].
 */
const SCRIPT = new RedisScript(`
local second = tonumber(redis.call('TIME')[1])
local window = ${RATE_WINDOW_SECONDS}
local limit = tonumber(ARGV[1])
local fields = redis.call('HGETALL', KEYS[1])
local sum, oldest = 0, second
for at = 1, #fields, 2 do
  local past = tonumber(fields[at])
  if past < second - window then
    redis.call('HDEL', KEYS[1], fields[at])
  else
    sum = sum + tonumber(fields[at + 1])
    if past < oldest then oldest = past end
  end
end
local wait = oldest + window + 1 - second
if sum >= limit then return {0, 0, wait} end
redis.call('HINCRBY', KEYS[1], second, 1)
redis.call('EXPIRE', KEYS[1], window + 1)
return {1, limit - sum - 1, wait}`);

/** The rate limits of one worker. */
export class RateLimiter {
  readonly #options: RateLimiterOptions;
  readonly #localAt: number;
  readonly #evictedAt: number;
  readonly #verdict: RateVerdict = { isAllowed: true, remaining: 0, resetSeconds: 0 };
  #redis: RedisClient | undefined;
  #url: string | undefined;
  #pausedUntilMs = 0;

  constructor(options: RateLimiterOptions) {
    this.#options = options;
    this.#localAt = options.block.findCounter("rateLimitsLocal");
    this.#evictedAt = options.block.findCounter("rateKeysEvicted");
  }

  /** Uses the Redis server at `url` from now on, or none. */
  setRedis(url: string | undefined): void {
    if (url === this.#url) return;
    this.#redis?.close();
    this.#url = url;
    const { log } = this.#options;
    this.#redis =
      url === undefined
        ? undefined
        : new RedisClient({
            url,
            onFailure: (error) =>
              log("warn", "Redis is not available, rate limits apply to this process alone", {
                error: error.message,
              }),
            onRecovery: () => log("info", "Redis is available again, rate limits are shared", {}),
          });
  }

  /** The key of `rule` for requests with this property. */
  findKey(rule: RateRule, text: string): RateKey {
    return { rule, text, place: this.#options.table.findPlace(rule.space, text) };
  }

  /** Takes one request of a key. The verdict is valid until the next call. */
  take(key: RateKey): RateVerdict | Promise<RateVerdict> {
    const redis = this.#redis;
    if (redis === undefined) return this.#takeLocally(key);
    if (!redis.isReady || this.#options.readNowMs() < this.#pausedUntilMs) {
      this.#count(this.#localAt, 1);
      return this.#takeLocally(key);
    }
    return this.#takeFrom(redis, key);
  }

  /** Closes the connection to Redis. */
  close(): void {
    this.#redis?.close();
    this.#redis = undefined;
  }

  #takeLocally({ rule, place }: RateKey): RateVerdict {
    const { table, readNowMs } = this.#options;
    const verdict = this.#verdict;
    verdict.isAllowed = table.take(place, rule.perMinute, readNowMs());
    verdict.remaining = table.remaining;
    verdict.resetSeconds = table.resetSeconds;
    if (table.evictions > 0) {
      this.#count(this.#evictedAt, table.evictions);
      table.evictions = 0;
    }
    return verdict;
  }

  async #takeFrom(redis: RedisClient, key: RateKey): Promise<RateVerdict> {
    const { rule, text } = key;
    const short =
      text.length <= KEY_CHARACTERS_MAX
        ? text
        : createHash("sha256").update(text).digest("base64url");
    const name = `${KEY_PREFIX}${rule.name}:${short}`;
    try {
      const reply = await withDeadline(
        SCRIPT.run(redis, [name], [String(rule.perMinute)]),
        DEADLINE_MS,
      );
      if (Array.isArray(reply)) {
        const [isAllowed, remaining, resetSeconds] = reply;
        return {
          isAllowed: isAllowed === 1,
          remaining: Number(remaining),
          resetSeconds: Number(resetSeconds),
        };
      }
    } catch (error) {
      this.#pause(error as Error);
    }
    this.#count(this.#localAt, 1);
    return { ...this.#takeLocally(key) };
  }

  #pause(error: Error): void {
    const { readNowMs, log } = this.#options;
    const nowMs = readNowMs();
    if (nowMs < this.#pausedUntilMs) return;
    this.#pausedUntilMs = nowMs + PAUSE_MS;
    log("warn", "Redis did not count a request, rate limits apply to this process alone", {
      error: error.message,
      pause_ms: PAUSE_MS,
    });
  }

  #count(at: number, change: number): void {
    const { values } = this.#options.block;
    values[at] = values[at]! + change;
  }
}
