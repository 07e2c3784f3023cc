// Gateways that share the ends of browser sessions through a real Redis.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { findRedisSkip, killRedis, startRedis } from "@platform/redis/testing";
import { waitFor } from "@platform/testing/wait";
import { navigate, readCookies } from "../fixture/browser.ts";
import { makeFolder, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { CLIENT_ID, startIssuer } from "../fixture/oidc-issuer.ts";

const EVENT = "http://schemas.openid.net/event/backchannel-logout";
const COOKIE_KEY = randomBytes(32).toString("base64url");

test(
  "a session that its provider ends at one gateway ends at all, also through an outage of Redis",
  { skip: findRedisSkip() },
  async (context) => {
    const issuer = await startIssuer(context);
    const server = createServer((_request, response) => response.end("served"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    context.after(() => {
      server.closeAllConnections();
      server.close();
    });
    const redis = await startRedis(context, await findFreePort());
    const auth = { type: "oidc", issuer: issuer.url, client_id: CLIENT_ID, allow_insecure: true };
    const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const config = {
      workers: 1,
      limits_redis_url: redis.url,
      routes: [{ prefix: "/app", target, auth }],
    };
    const env = { PLATFORM_GATE_COOKIE_KEYS: COOKIE_KEY };
    const folders = [makeFolder(context), makeFolder(context), makeFolder(context)];
    const start = (at: number) =>
      startGate(context, {
        runtime: runtimesOfRules[at % runtimesOfRules.length]!,
        config,
        env,
        folder: folders[at]!,
      });
    const [one, two] = await Promise.all([start(0), start(1)]);

    const signIn = async (sid: string): Promise<string> => {
      issuer.sid = sid;
      const away = await navigate(new URL("/app", one.url), "");
      const login = await navigate(new URL(away.headers.get("location") ?? "", one.url), "");
      const sent = new URL(login.headers.get("location") ?? assert.fail()).searchParams;
      issuer.nonce = sent.get("nonce") ?? "";
      const callback = `/_platform/oidc/callback?code=c&state=${sent.get("state")}`;
      return readCookies(await navigate(new URL(callback, one.url), readCookies(login)));
    };
    const end = async (url: string, sid: string): Promise<void> => {
      const now = Math.floor(Date.now() / 1_000);
      const token = issuer.sign({
        iss: issuer.url,
        aud: CLIENT_ID,
        iat: now,
        exp: now + 120,
        sub: "ada",
        sid,
        jti: String(Math.random()),
        events: { [EVENT]: {} },
      });
      const body = new URLSearchParams({ logout_token: token });
      const answer = await fetch(`${url}/_platform/oidc/backchannel`, { method: "POST", body });
      assert.equal(answer.status, 200);
    };
    const isLive = async (url: string, cookie: string): Promise<boolean> =>
      (await navigate(new URL("/app", url), cookie)).status === 200;

    const first = await signIn("session-1");
    const second = await signIn("session-2");
    for (const cookie of [first, second]) {
      assert.deepEqual(
        [await isLive(one.url, cookie), await isLive(two.url, cookie)],
        [true, true],
      );
    }
    await end(one.url, "session-1");
    assert.equal(await isLive(one.url, first), false);
    await waitFor(async () => !(await isLive(two.url, first)), "its end at the other gateway");
    assert.equal(await isLive(two.url, second), true);

    await killRedis(redis);
    await end(two.url, "session-2");
    assert.equal(await isLive(one.url, second), true);
    await startRedis(context, redis.port);
    await waitFor(async () => !(await isLive(one.url, second)), "the end of the outage");
    // A new gateway has all of them before it accepts requests.
    const three = await start(2);
    for (const cookie of [first, second]) assert.equal(await isLive(three.url, cookie), false);
  },
);
