// The Redis client of the gateway and the console.
export { withDeadline } from "./deadline.ts";
export { RedisClient, type RedisClientOptions } from "./redis-client.ts";
export { RedisScript } from "./redis-script.ts";
export type { RedisReply } from "./reply-parser.ts";
