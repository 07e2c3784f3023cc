// The client and a real Redis that is killed and comes back.
import assert from "node:assert/strict";
import { once, EventEmitter } from "node:events";
import { test } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { RedisClient } from "../src/index.ts";
import { findRedisSkip, killRedis, startRedis } from "../src/testing.ts";

const skip = findRedisSkip();

test(
  "commands are pipelined, fail immediately while Redis is down, and work again",
  { skip },
  async (t) => {
    const port = await findFreePort();
    const first = await startRedis(t, port);
    const events = new EventEmitter();
    const client = new RedisClient({
      url: `${first.url}/3`,
      onFailure: () => events.emit("failure"),
      onRecovery: () => events.emit("recovery"),
    });
    t.after(() => client.close());
    while (!client.isReady) await new Promise((resolve) => setImmediate(resolve));
    const replies = await Promise.all([
      client.send("SET", "key", "v\u00e4lue\r\n"),
      client.send("GET", "key"),
      client.send("NO-SUCH-COMMAND").catch((error: Error) => error.message.slice(0, 3)),
      client.send("GET", "missing"),
    ]);
    assert.deepEqual(replies, ["OK", "v\u00e4lue\r\n", "ERR", null]);

    const failed = once(events, "failure");
    await killRedis(first);
    await failed;
    await assert.rejects(client.send("GET", "key"), /not connected/);

    const recovered = once(events, "recovery");
    await startRedis(t, port);
    await recovered;
    assert.equal(await client.send("GET", "key"), null, "a server without persistence");
  },
);
