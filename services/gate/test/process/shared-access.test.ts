// Gateways that share API keys and revoked users through a real Redis, which is killed and comes back empty.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { test, type TestContext } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { serve } from "../fixture/serve.ts";
import { findRedisSkip, killRedis, startRedis } from "@platform/redis/testing";

const SECRET = "a-secret-of-at-least-thirty-two-bytes";
const OPERATOR = { Authorization: "Bearer the-operator-token" };

function signToken(user: string): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const now = Math.floor(Date.now() / 1_000);
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ sub: user, iat: now, exp: now + 600 })}`;
  return `${signed}.${createHmac("sha256", SECRET).update(signed).digest("base64url")}`;
}

async function startUpstream(context: TestContext): Promise<string> {
  const server = createServer((_request, response) => response.end("served"));
  return await serve(context, server);
}

type Gate = Awaited<ReturnType<typeof startGate>>;

async function send(gate: Gate, method: string, path: string, body?: object): Promise<Response> {
  const answer = await fetch(`${gate.url}${path}`, {
    method,
    headers: { ...OPERATOR, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer;
}

const byKey = async (gate: Gate, key: string): Promise<number> =>
  (await fetch(`${gate.url}/shop`, { headers: { "X-API-Key": key } })).status;
const byToken = async (gate: Gate, token: string): Promise<number> =>
  (await fetch(`${gate.url}/user`, { headers: { Authorization: `Bearer ${token}` } })).status;
const untilStatus = (what: string, read: () => Promise<number>, status: number): Promise<true> =>
  waitFor(async () => (await read()) === status, what);

test(
  "gateways share API keys and revoked users, also those of an outage of Redis",
  { skip: findRedisSkip() },
  async (context) => {
    const target = await startUpstream(context);
    const redis = await startRedis(context, await findFreePort());
    const config = {
      workers: 1,
      auth_token: "the-operator-token",
      jwt_secret: SECRET,
      limits_redis_url: redis.url,
      routes: [
        { prefix: "/shop", target, require_api_key: true },
        { prefix: "/user", target },
      ],
    };
    const start = (at: number, folder: string): Promise<Gate> =>
      startGate(context, {
        runtime: runtimesOfRules[at % runtimesOfRules.length]!,
        config,
        folder,
      });
    const folders = [0, 1, 2].map(() => makeFolder(context));
    const [a, b] = await Promise.all([start(0, folders[0]!), start(1, folders[1]!)]);
    const createKey = async (gate: Gate) =>
      (await (
        await send(gate, "POST", "/api/v1/admin/api-keys", { tenant: "acme", name: "shop" })
      ).json()) as { id: string; key: string };

    const first = await createKey(a);
    assert.equal(await byKey(a, first.key), 200);
    await untilStatus("the key works at the other gateway", () => byKey(b, first.key), 200);
    const ada = signToken("ada");
    assert.equal(await byToken(b, ada), 200);
    await send(a, "POST", "/api/v1/admin/policy/revoke", { username: "ada" });
    await untilStatus("the user is revoked at the other gateway", () => byToken(b, ada), 401);
    const second = await createKey(b);
    await untilStatus("the second key works at the first gateway", () => byKey(a, second.key), 200);
    await send(b, "DELETE", `/api/v1/admin/api-keys/${first.id}`);
    await untilStatus("the first key is revoked everywhere", () => byKey(a, first.key), 401);

    // A new gateway has everything before it accepts requests.
    const c = await start(0, folders[2]!);
    assert.equal(await byKey(c, second.key), 200);
    assert.equal(await byKey(c, first.key), 401);
    assert.equal(await byToken(c, ada), 401);
    c.signal("SIGTERM");
    await c.ended;

    await killRedis(redis);
    const isReported = ({ msg }: { msg: string }): boolean =>
      msg.startsWith("API keys and revocations are not shared");
    await Promise.all([a.waitForLine(isReported), b.waitForLine(isReported)]);
    const bob = signToken("bob");
    await send(a, "POST", "/api/v1/admin/policy/revoke", { username: "bob" });
    assert.equal(await byToken(a, bob), 401);
    assert.equal(await byToken(b, bob), 200);
    await send(a, "DELETE", `/api/v1/admin/api-keys/${second.id}`);
    assert.equal(await byKey(b, second.key), 200);
    // The entries of the other gateway are on disk.
    b.signal("SIGTERM");
    await b.ended;
    const again = await start(1, folders[1]!);
    assert.equal(await byToken(again, ada), 401);
    assert.equal(await byKey(again, first.key), 401);
    assert.equal(await byKey(again, second.key), 200);
    await waitFor(async () => {
      const { warnings = {} } = (await (await fetch(`${again.url}/readyz`)).json()) as {
        warnings?: Record<string, string>;
      };
      return /have not been shared/.test(warnings["shared_access"] ?? "");
    }, "readiness warns");

    // The new Redis has no data: the gateways send all they have.
    await startRedis(context, redis.port);
    await untilStatus("bob is revoked at the other gateway", () => byToken(again, bob), 401);
    await untilStatus("the key is revoked there", () => byKey(again, second.key), 401);
    const scrape = await fetch(`${a.url}/metrics`, { headers: OPERATOR });
    assert.match(await scrape.text(), /^platform_gate_access_share_failures_total [1-9]/m);
  },
);

test(
  "a reload of the policy reaches all gateways, also one of an outage of Redis",
  { skip: findRedisSkip() },
  async (context) => {
    const target = await startUpstream(context);
    const redis = await startRedis(context, await findFreePort());
    const config = {
      workers: 1,
      auth_token: "the-operator-token",
      limits_redis_url: redis.url,
      routes: [{ prefix: "/", target, auth: { type: "none" } }],
    };
    const folders = [0, 1, 2].map(() => makeFolder(context));
    const start = (at: number): Promise<Gate> =>
      startGate(context, {
        runtime: runtimesOfRules[at % runtimesOfRules.length]!,
        config,
        folder: folders[at]!,
      });
    const [a, b] = await Promise.all([start(0), start(1)]);
    const reload = async (gate: Gate, path: string): Promise<string> => {
      const body = { rules: [{ effect: "deny", path }] };
      const answer = await send(gate, "POST", "/api/v1/admin/policy/reload", body);
      return ((await answer.json()) as { message: string }).message;
    };
    const ask = async (gate: Gate, path: string): Promise<number> =>
      (await fetch(`${gate.url}${path}`)).status;

    assert.match(await reload(a, "/one"), /version 2 /);
    assert.equal(await ask(a, "/one"), 403);
    await untilStatus("the other gateway denies it", () => ask(b, "/one"), 403);
    assert.match(await reload(b, "/two"), /version 3 /);
    await untilStatus("the first gateway denies the second", () => ask(a, "/two"), 403);
    assert.equal(await ask(a, "/one"), 200);
    // A new gateway has the policy before it accepts requests.
    const c = await start(2);
    assert.equal(await ask(c, "/two"), 403);
    c.signal("SIGTERM");
    await c.ended;

    await killRedis(redis);
    assert.match(await reload(a, "/three"), /version 4 /);
    assert.equal(await ask(b, "/three"), 200);
    // The policy of another gateway is on disk.
    b.signal("SIGTERM");
    await b.ended;
    const again = await start(1);
    assert.equal(await ask(again, "/two"), 403);
    await startRedis(context, redis.port);
    await untilStatus("the reload of the outage arrives", () => ask(again, "/three"), 403);
    assert.equal(await ask(again, "/two"), 200);
  },
);
