// Delays after failed attempts, on both databases.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { openDatabase } from "@platform/kernel/db";
import { PlatformError } from "@platform/kernel/errors";
import { createManualClock } from "@platform/kernel/time";
import type { AuthDatabase, AuthTables } from "../../src/database/schema.ts";
import { THROTTLE_MIGRATIONS } from "../../src/database/throttle.ts";
import { Throttle } from "../../src/guard/throttle.ts";
import { onEachDatabase } from "../databases.ts";

onEachDatabase((makeUrl) => {
  let database: AuthDatabase | undefined;
  afterEach(() => database?.close());

  const start = async () => {
    const clock = createManualClock(Date.UTC(2026, 0, 1));
    database = openDatabase<AuthTables>({ url: await makeUrl(), service: "auth" });
    await database.migrate(THROTTLE_MIGRATIONS);
    const throttle = new Throttle(database, clock);
    const attempt = () => throttle.begin({ key: "account", free: 3 }, [{ key: "net", free: 50 }]);
    /** Seconds to wait; `undefined` if the attempt was admitted. */
    const readWait = async (): Promise<number | undefined> => {
      const refused = await attempt().then(
        () => undefined,
        (error: unknown) => error,
      );
      if (refused === undefined) return undefined;
      assert.ok(refused instanceof PlatformError);
      return Number(refused.headers["Retry-After"]);
    };
    return { clock, attempt, readWait };
  };

  test("after the free attempts the delay doubles from 1 s to 15 min, and a day resets it", async () => {
    const { clock, readWait } = await start();
    for (const _ of [1, 2, 3]) assert.equal(await readWait(), undefined);
    const waits = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900];
    for (const seconds of waits) {
      assert.equal(await readWait(), seconds);
      clock.advance(seconds * 1_000 - 1);
      assert.equal(await readWait(), 1);
      clock.advance(1);
      assert.equal(await readWait(), undefined);
    }
    clock.advance(86_400_001);
    for (const _ of [1, 2, 3]) assert.equal(await readWait(), undefined);
    assert.equal(await readWait(), 1);
  });

  test("a success resets the account's attempts", async () => {
    const { attempt, readWait } = await start();
    for (const _ of [1, 2]) await attempt();
    await (await attempt()).succeed();
    for (const _ of [1, 2, 3]) assert.equal(await readWait(), undefined);
    assert.equal(await readWait(), 1);
  });
});
