// Scripts of Redis that count spending and tokens for all gateways.
//
//   platform:gate:ai:spent:DAY:TENANT   hash: gateway → pico-USD that it has reserved and settled on this UTC day
//   platform:gate:ai:tokens:LIMIT       hash: second → tokens
//
// Sums of money exceed the integers that Lua has: they are added in two parts, below and above 10^9.
import { RedisScript } from "@platform/redis";
import { TOKEN_WINDOW_SECONDS } from "../../shared-state/index.ts";

/** Seconds after which the sums of a day are forgotten. */
const DAY_KEPT_SECONDS = 259_200;

/** Parts of a sum are below this. */
export const SUM_PART = 1_000_000_000n;

const SUMS = `
local part = ${SUM_PART}
local function split(text)
  local sign = 1
  if string.sub(text, 1, 1) == '-' then
    sign = -1
    text = string.sub(text, 2)
  end
  local high = tonumber(string.sub(text, 1, -10)) or 0
  return sign * high, sign * tonumber(string.sub(text, -9))
end
local function normalize(high, low)
  local carry = math.floor(low / part)
  return high + carry, low - carry * part
end
local function exceeds(high, low, otherHigh, otherLow)
  high, low = normalize(high - otherHigh, low - otherLow)
  return high > 0 or (high == 0 and low > 0)
end
local function sum(key)
  local high, low = 0, 0
  for _, text in ipairs(redis.call('HVALS', key)) do
    local more, rest = split(text)
    high, low = normalize(high + more, low + rest)
  end
  return high, low
end`;

/**
 * Reserves tokens of limits and money of a day, all or nothing. KEYS: the day of the tenant, then limits. ARGV: gateway, pico,
 * pico of the budget or "", then tokens and limit of each. Returns [1, second, high, low, own pico]. Refuses
 * with [0, number of the limit, remaining tokens, seconds to wait], or for the budget with [0, 0, high, low, own pico].
 */
export const RESERVE_SCRIPT = new RedisScript(`${SUMS}
local window = ${TOKEN_WINDOW_SECONDS}
local second = tonumber(redis.call('TIME')[1])
for at = 2, #KEYS do
  local tokens, limit = tonumber(ARGV[2 * at]), tonumber(ARGV[2 * at + 1])
  local fields = redis.call('HGETALL', KEYS[at])
  local used, oldest = 0, second
  for field = 1, #fields, 2 do
    local past, count = tonumber(fields[field]), tonumber(fields[field + 1])
    if past < second - window then
      redis.call('HDEL', KEYS[at], fields[field])
    else
      used = used + count
      if count > 0 and past < oldest then oldest = past end
    end
  end
  if used + tokens > limit then
    return {0, at - 1, math.max(0, limit - used), oldest + window + 1 - second}
  end
end
local high, low = sum(KEYS[1])
local more, rest = split(ARGV[2])
if ARGV[3] ~= '' and ARGV[2] ~= '0' then
  local maxHigh, maxLow = split(ARGV[3])
  if exceeds(high + more, low + rest, maxHigh, maxLow) then
    return {0, 0, high, low, redis.call('HGET', KEYS[1], ARGV[1]) or '0'}
  end
end
for at = 2, #KEYS do
  redis.call('HINCRBY', KEYS[at], second, ARGV[2 * at])
  redis.call('EXPIRE', KEYS[at], window + 2)
end
redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ${DAY_KEPT_SECONDS})
high, low = normalize(high + more, low + rest)
return {1, second, high, low, redis.call('HGET', KEYS[1], ARGV[1])}`);

/**
 * Replaces what was reserved. KEYS as above. ARGV: gateway, change in pico, second of the reservation, then the change of each
 * limit's tokens, which has no effect once the second has left the window.
 */
export const SETTLE_SCRIPT = new RedisScript(`
redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ${DAY_KEPT_SECONDS})
for at = 2, #KEYS do
  if redis.call('HEXISTS', KEYS[at], ARGV[3]) == 1 then
    redis.call('HINCRBY', KEYS[at], ARGV[3], ARGV[at + 2])
  end
end
return 1`);

/** Raises the sum of a gateway that has restarted to what its own ledger says. KEYS: the day. ARGV: gateway, pico. */
export const RAISE_SCRIPT = new RedisScript(`${SUMS}
local known = redis.call('HGET', KEYS[1], ARGV[1])
local high, low = split(ARGV[2])
local isMore = known == false
if not isMore then
  local knownHigh, knownLow = split(known)
  isMore = exceeds(high, low, knownHigh, knownLow)
end
if isMore then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  redis.call('EXPIRE', KEYS[1], ${DAY_KEPT_SECONDS})
end
return 1`);

/** The key of the spending of a tenant on a day. */
export function spentKey(tenant: string, day: number): string {
  return `platform:gate:ai:spent:${day}:${tenant}`;
}

/** The key of a limit by tokens. */
export function tokensKey(limit: string): string {
  return `platform:gate:ai:tokens:${limit}`;
}
