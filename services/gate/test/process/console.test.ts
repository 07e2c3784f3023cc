// The web console of real gateways: sessions that two share through Redis.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { findRedisSkip, startRedis } from "@platform/redis/testing";
import { type ConsolePage, openConsolePage } from "../fixture/console-page.ts";
import { makeFolder, runtimes, startGate } from "../fixture/gate-process.ts";

const [runtime] = runtimes;
const TOKEN = "an-operator-token-of-some-length";
const CONSOLE = "http://console.test";

async function startConsole(t: TestContext, folder: string, redisUrl: string) {
  const config = { auth_token: TOKEN, console_addr: "127.0.0.1:0", console_url: CONSOLE };
  const env = { PLATFORM_REDIS_URL: redisUrl, PLATFORM_GATE_DATA_DIR: join(folder, "data") };
  return startGate(t, { runtime: runtime!, folder: makeFolder(t), config, env });
}

test(
  "two gateways with one Redis and one key accept and end each other's sessions",
  { skip: findRedisSkip() },
  async (t) => {
    const { url } = await startRedis(t, await findFreePort());
    const folder = makeFolder(t);
    const [one, other] = [await startConsole(t, folder, url), await startConsole(t, folder, url)];
    const [here, there] = [one, other].map(({ ports }) =>
      openConsolePage({ port: ports["console"]!, origin: CONSOLE }),
    ) as [ConsolePage, ConsolePage];
    const cookie = await here.signIn({ service: "gate", token: TOKEN });
    const headers = { cookie };
    assert.equal((await there.ask("/svc/gate/api/v1/routes", { headers })).status, 200);
    const out = await there.ask("/console/logout", { method: "POST", headers, body: {} });
    assert.equal(out.status, 200);
    assert.equal((await here.ask("/svc/gate/api/v1/routes", { headers })).status, 401);
    const key = statSync(join(folder, "data", "console-secrets.json"));
    assert.equal(key.mode & 0o777, 0o600, "the generated key is the owner's");
    const log = JSON.stringify([one.lines(), other.lines()]);
    for (const secret of [TOKEN, cookie.split("=")[1]!, "se%2Fcret"]) {
      assert.ok(!log.includes(secret), "no secret in the log");
    }
  },
);
