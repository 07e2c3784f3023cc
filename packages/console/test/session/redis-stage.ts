// Stores of sessions at a Redis of the test.
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createLogger } from "@platform/kernel/log";
import { createSecretBox } from "@platform/kernel/secrets";
import type { Clock } from "@platform/kernel/time";
import { nameSession } from "../../src/session/session-store.ts";
import { RedisSessions } from "../../src/session/redis-sessions.ts";

/** Opens a store and waits until Redis answers. */
export async function openRedisSessions(
  t: Pick<TestContext, "after">,
  {
    url,
    clock,
    keys,
    log = [],
  }: { url: string; clock: Clock; keys: readonly Buffer[]; log?: string[] },
): Promise<RedisSessions> {
  const logger = createLogger({
    service: "console",
    level: "debug",
    format: "json",
    write: (line) => void log.push(line),
  });
  const box = createSecretBox("gate_console", keys);
  const store = new RedisSessions({ url, box, clock, logger });
  t.after(() => store.close());
  await waitUntilAnswering(store);
  return store;
}

/** Waits until a store reaches Redis. */
export async function waitUntilAnswering(store: RedisSessions): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      await store.find(nameSession("probe"));
      return;
    } catch (error) {
      if (attempt > 1_000) throw error;
      await sleep(20);
    }
  }
}
