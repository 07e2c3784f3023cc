// Sessions in Redis: what Redis can see and change, and its outages.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test, type TestContext } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { RedisClient } from "@platform/redis";
import { findRedisSkip, killRedis, startRedis } from "@platform/redis/testing";
import { toPlatformError } from "@platform/kernel/errors";
import type { RedisSessions } from "../../src/session/redis-sessions.ts";
import type { Grant } from "../../src/session/session.ts";
import { createMovedClock } from "../stage.ts";
import { openRedisSessions, waitUntilAnswering } from "./redis-stage.ts";

const options = { skip: findRedisSkip() };
const GRANT: Grant = {
  method: "oidc",
  user: { id: "user-of-the-test", name: "ada-of-the-test" },
  isAdmin: false,
  permissions: [],
  roles: [],
  credentials: new Map([["notify", { kind: "bearer", token: "token-of-mail" }]]),
  tokens: {
    accessToken: "the-access-token",
    refreshToken: "the-refresh-token",
    idToken: "the-id-token",
    renewAtMs: 0,
  },
  subject: { sub: "subject-of-the-test", sid: "sid-of-the-test" },
};
const DATA_KEYS = "{platform:console}:session:*";

async function start(t: TestContext) {
  const port = await findFreePort();
  const server = await startRedis(t, port);
  const { clock, advance } = createMovedClock();
  const keys = [randomBytes(32)];
  const log: string[] = [];
  const store = await openRedisSessions(t, { url: server.url, clock, keys, log });
  const redis = new RedisClient({ url: server.url, onFailure: () => {}, onRecovery: () => {} });
  t.after(() => redis.close());
  while (!redis.isReady) await new Promise((resolve) => setImmediate(resolve));
  return { port, server, clock, advance, keys, log, store, redis };
}

async function isUnavailable(work: Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => {
    const { status, fields } = toPlatformError(error);
    assert.deepEqual([status, fields["reason"]], [503, "sessions_unavailable"]);
    return true;
  });
}

test("Redis sees neither the token of the browser nor those of services", options, async (t) => {
  const { store, redis } = await start(t);
  const { token, session } = await store.begin(GRANT);
  await store.update(session.id, () => ({ tokens: GRANT.tokens! }));
  const keys = (await redis.send("KEYS", "*")) as string[];
  const values = await Promise.all(
    keys.map(async (key) =>
      (await redis.send("TYPE", key)) === "hash"
        ? redis.send("HGETALL", key)
        : redis.send("ZRANGE", key, "0", "-1"),
    ),
  );
  const text = JSON.stringify([keys, values]);
  assert.ok(text.includes(session.id));
  const { accessToken, refreshToken, idToken } = GRANT.tokens!;
  for (const secret of [token, accessToken, refreshToken!, idToken!, "of-mail", "of-the-test"]) {
    assert.ok(!text.includes(secret), secret);
  }
});

test("Redis forgets a session by itself, at its idle time or its end", options, async (t) => {
  const { store, redis, advance } = await start(t);
  const { session } = await store.begin(GRANT);
  const [key] = (await redis.send("KEYS", DATA_KEYS)) as [string];
  const first = Number(await redis.send("PTTL", key));
  assert.ok(first > 3_500_000 && first <= 3_600_000, String(first));
  for (let half = 1; half <= 23; half += 1) {
    advance(1_800_000);
    assert.ok(await store.use(session.id));
  }
  const last = Number(await redis.send("PTTL", key));
  assert.ok(last > 0 && last <= 1_800_000, "it does not live beyond twelve hours");
});

test("a session that Redis has changed or moved is not accepted", options, async (t) => {
  const { store, redis, log, clock, server, advance } = await start(t);
  const admin = await store.begin({ ...GRANT, isAdmin: true });
  const own = await store.begin(GRANT);
  const key = (id: string): string => `{platform:console}:session:${id}`;
  const data = (await redis.send("HGET", key(admin.session.id), "data")) as string;
  const mine = (await redis.send("HGET", key(own.session.id), "data")) as string;
  await redis.send("HSET", key(own.session.id), "data", data);
  assert.equal(await store.find(own.session.id), undefined, "the session of another");
  await redis.send("HSET", key(own.session.id), "data", `${mine.slice(0, -4)}AAAA`);
  assert.equal(await store.find(own.session.id), undefined);
  await redis.send("HSET", key(own.session.id), "data", mine);
  assert.ok(await store.find(own.session.id));
  const late = String(clock.now() + 86_400_000);
  await redis.send("HSET", key(own.session.id), "ends", late, "used", late);
  advance(43_200_000);
  assert.equal(await store.find(own.session.id), undefined, "its end is sealed");
  const other = await openRedisSessions(t, {
    url: server.url,
    clock,
    keys: [randomBytes(32)],
    log,
  });
  const fresh = await store.begin(GRANT);
  assert.equal(await other.find(fresh.session.id), undefined);
  assert.ok(await store.find(fresh.session.id), "a console with another key does not end it");
  assert.ok(log.some((line) => line.includes("all consoles need the same encryption keys")));
  assert.ok(!log.some((line) => line.includes("the-access-token")));
});

test("keys are rotated without a sign-in: the first seals, all open", options, async (t) => {
  const { store, server, clock, keys } = await start(t);
  const { session } = await store.begin(GRANT);
  const rotated = await openRedisSessions(t, {
    url: server.url,
    clock,
    keys: [randomBytes(32), ...keys],
  });
  assert.equal((await rotated.find(session.id))?.user.name, "ada-of-the-test");
});

test("while Redis is down each call is refused with 503, and works again", options, async (t) => {
  const { store, server, port, log } = await start(t);
  const { session } = await store.begin(GRANT);
  await killRedis(server);
  await isUnavailable(store.use(session.id));
  await isUnavailable(store.begin(GRANT));
  await isUnavailable(store.end(session.id));
  await isUnavailable(store.endSubject({ sub: "a", sid: undefined }));
  await isUnavailable(
    store.renew(
      session.id,
      () => true,
      () => assert.fail("not renewed"),
    ),
  );
  await startRedis(t, port);
  await waitUntilAnswering(store);
  assert.equal(await store.use(session.id), undefined, "a server without persistence");
  assert.ok(await store.find((await store.begin(GRANT)).session.id));
  const reports = log.filter((line) => line.includes("unavailable"));
  assert.equal(reports.length, 1, "one line for an outage");
});

test("a Redis that does not reply is down after two seconds", options, async (t) => {
  const { store, server } = await start(t);
  server.process.kill("SIGSTOP");
  const began = performance.now();
  await isUnavailable(store.begin(GRANT));
  assert.ok(performance.now() - began < 20_000);
  server.process.kill("SIGCONT");
  await waitUntilAnswering(store);
});

test("live views survive a short outage, and are given up in a long one", options, async (t) => {
  const { store, server, advance } = await start(t);
  const { session } = await store.begin(GRANT);
  const reasons: string[] = [];
  store.watch(session.id, (reason) => reasons.push(reason));
  await store.sweep();
  await killRedis(server);
  await untilUnavailable(store);
  advance(9_000);
  await store.sweep();
  assert.deepEqual(reasons, []);
  advance(1_001);
  await store.sweep();
  await store.sweep();
  assert.deepEqual(reasons, ["unknown"]);
});

test("a lock of a process that died holds up nobody for long", options, async (t) => {
  const { store, redis } = await start(t);
  const { session } = await store.begin(GRANT);
  await redis.send("SET", `{platform:console}:renewal:${session.id}`, "dead", "PX", "300");
  const renewed = await store.renew(
    session.id,
    () => true,
    () => Promise.resolve({ tokens: { ...GRANT.tokens!, accessToken: "renewed" } }),
  );
  assert.equal(renewed?.tokens?.accessToken, "renewed");
  assert.deepEqual(await redis.send("KEYS", "*renewal*"), [], "it is released");
});

async function untilUnavailable(store: RedisSessions): Promise<void> {
  for (;;) {
    try {
      await store.find("probe");
    } catch {
      return;
    }
  }
}
