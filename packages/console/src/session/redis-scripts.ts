// Scripts with which sessions are read and changed atomically in Redis.
import { RedisScript } from "@platform/redis";

/** All keys belong to one slot of a cluster. */
const PREFIX = "{platform:console}:";
const SESSION = `${PREFIX}session:`;
/** Ids of all sessions by the time of their last use. */
export const INDEX = `${PREFIX}sessions`;

/** Key of a session: a hash of `data` (sealed), `version`, `used`, `ends`, `sub` and `sid`. */
export function nameKey(id: string): string {
  return `${SESSION}${id}`;
}

/** Key that the process holds which renews a session. */
export function nameLock(id: string): string {
  return `${PREFIX}renewal:${id}`;
}

/**
 * Begins a session; beyond the maximum those end that were unused for the longest time. Keys: session, index. Arguments:
 * id, now, idle time, end, data, sub, sid, maximum.
 */
export const BEGIN = new RedisScript(`
local now, idle, ends = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - idle))
while redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[8]) do
  redis.call('DEL', '${SESSION}' .. redis.call('ZPOPMIN', KEYS[2])[1])
end
redis.call('HSET', KEYS[1], 'data', ARGV[5], 'version', 1, 'used', ARGV[2], 'ends', ARGV[4], 'sub', ARGV[6], 'sid', ARGV[7])
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.min(idle, ends - now)))
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
return 1`);

/**
 * Reads a live session, and marks it as used if asked to. Keys: session, index. Arguments: id, now, idle time, 1 to mark.
 * Returns data, version and time of the last use.
 */
export const READ = new RedisScript(`
local held = redis.call('HMGET', KEYS[1], 'data', 'version', 'used', 'ends')
if not held[1] then return false end
local now, idle, used, ends = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(held[3]), tonumber(held[4])
if now >= ends or now >= used + idle then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  return false
end
if ARGV[4] == '1' and now > used then
  redis.call('HSET', KEYS[1], 'used', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.min(idle, ends - now)))
  redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
  held[3] = ARGV[2]
end
return {held[1], held[2], held[3]}`);

/** Replaces the data of a session that still has the version that was read. Key: session. Arguments: version, data. */
export const REPLACE = new RedisScript(`
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'data', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'version', 1)
return 1`);

/** Ends a session. Keys: session, index. Argument: id. */
export const END = new RedisScript(`
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])`);

/** Lists all sessions: id, hash of the subject, hash of the session at identity, one after another. Key: index. */
export const LIST = new RedisScript(`
local found = {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local held = redis.call('HMGET', '${SESSION}' .. id, 'sub', 'sid')
  if held[1] then
    table.insert(found, id)
    table.insert(found, held[1])
    table.insert(found, held[2])
  end
end
return found`);

/** Positions of the sessions among the keys that have ended, from 0. Arguments: now, idle time. */
export const FIND_ENDED = new RedisScript(`
local now, idle, ended = tonumber(ARGV[1]), tonumber(ARGV[2]), {}
for at, key in ipairs(KEYS) do
  local held = redis.call('HMGET', key, 'used', 'ends')
  if not held[1] or now >= tonumber(held[2]) or now >= tonumber(held[1]) + idle then
    table.insert(ended, at - 1)
  end
end
return ended`);

/** Releases a lock that the process still holds. Key: lock. Argument: its owner. */
export const RELEASE = new RedisScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`);
