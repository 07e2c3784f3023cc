// A Lua script, sent as its SHA-1 once the server has it.
import { hash } from "node:crypto";
import type { RedisClient } from "./redis-client.ts";
import type { RedisReply } from "./reply-parser.ts";

export class RedisScript {
  readonly #source: string;
  readonly #sha1: string;

  constructor(source: string) {
    this.#source = source;
    this.#sha1 = hash("sha1", source, "hex");
  }

  /** Runs it; a server that lacks it, because it was restarted, receives the source. */
  async run(
    client: Pick<RedisClient, "send">,
    keys: readonly string[],
    values: readonly string[],
  ): Promise<RedisReply> {
    const words = [String(keys.length), ...keys, ...values];
    try {
      return await client.send("EVALSHA", this.#sha1, ...words);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      return client.send("EVAL", this.#source, ...words);
    }
  }
}
