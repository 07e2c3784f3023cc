// Two consoles of one name that share sessions through a real Redis: in at one, used and ended at the other.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { createUnauthorizedError } from "@platform/kernel/errors";
import type { Guard } from "@platform/kernel/http";
import { findFreePort } from "@platform/kernel/testing";
import { findRedisSkip, killRedis, startRedis } from "@platform/redis/testing";
import { waitFor } from "@platform/testing/wait";
import { CLIENT, startIssuer } from "../oidc/issuer.ts";
import { readSetCookie, startStage, TOKEN, type Answer, type Stage } from "../stage.ts";
import { start } from "./front-stage.ts";

const options = { skip: findRedisSkip() };
const URL_OF_BOTH = "http://console.test";
const SAMPLES = "/svc/notify/api/v1/samples";

async function startTwo(t: TestContext) {
  const issuer = await startIssuer(t);
  const guard: Guard = ({ headers }) => {
    if (headers.get("authorization") === `Bearer ${TOKEN}`) return { kind: "operator" };
    if (headers.has("authorization")) return { kind: "anonymous" };
    throw createUnauthorizedError("Sign in first.");
  };
  const mail = await startStage(t, { id: "notify", guard });
  const port = await findFreePort();
  const redis = await startRedis(t, port);
  const shared = { redisUrl: redis.url, encryptionKeys: [randomBytes(32)] };
  const identity = { ...CLIENT, issuer: issuer.url, scopes: ["openid"] };
  const targets = [{ id: "notify" as const, url: mail.url }];
  const open = () => start(t, targets, identity, { shared, url: URL_OF_BOTH });
  const [one, other] = [await open(), await open()];
  for (const { call } of [one, other]) {
    await waitFor(
      async () =>
        (await call("GET", "/console/session", undefined, { cookie: "platform_console=a" }))
          .status === 401,
    );
  }
  return { issuer, mail, redis, port, one, other };
}

/** Signs in at identity: the way there begins at one console, the way back may lead to the other. */
async function signInWith(
  { next }: Awaited<ReturnType<typeof startIssuer>>,
  begin: Stage["call"],
  finish: Stage["call"],
): Promise<string> {
  const started = await begin("GET", "/console/oidc/start", undefined, {
    "sec-fetch-site": "none",
  });
  const to = new URL(started.headers.get("location")!).searchParams;
  Object.assign(next, { sub: "ada", sid: "session-1", nonce: to.get("nonce") });
  const back = `/console/oidc/callback?code=c&state=${to.get("state")}`;
  const cookie = readSetCookie(started);
  const ended = await finish("GET", back, undefined, { cookie, "sec-fetch-site": "cross-site" });
  assert.equal(ended.headers.get("location"), "/ui/", ended.text);
  const session = ended.headers.getSetCookie().find((item) => item.startsWith("platform_console="));
  return session!.split(";", 1)[0]!;
}

async function readStatus(call: Stage["call"], cookie: string): Promise<number> {
  return (await call("GET", "/console/session", undefined, { cookie })).status;
}

test("a sign-in at one console is valid at the other, and ends at both", options, async (t) => {
  const { one, other } = await startTwo(t);
  const cookie = await one.signIn("notify");
  const used = await other.call("POST", SAMPLES, {}, { cookie });
  assert.deepEqual([used.status, used.body.caller], [200, "operator"]);
  const live = one.open("/console/live", { cookie, origin: URL_OF_BOTH });
  const seen = new Promise((resolve) => live.once("message", resolve));
  await once(live, "open");
  await seen;
  const closed = once(live, "close");
  const began = performance.now();
  assert.equal((await other.call("POST", "/console/logout", {}, { cookie })).status, 200);
  assert.equal((await closed)[0], 4401);
  const tookMs = performance.now() - began;
  t.diagnostic(`the live view at the other console ended after ${Math.round(tookMs)} ms`);
  assert.ok(tookMs < 10_000, "two seconds, with room for a loaded machine");
  for (const { call } of [one, other]) assert.equal(await readStatus(call, cookie), 401);
});

test("a sign-in at identity may return to the other console", options, async (t) => {
  const { issuer, one, other } = await startTwo(t);
  const cookie = await signInWith(issuer, one.call, other.call);
  for (const { call } of [one, other]) assert.equal(await readStatus(call, cookie), 200);
});

test("a back-channel logout at one console ends live views at the other", options, async (t) => {
  const { issuer, one, other } = await startTwo(t);
  const cookie = await signInWith(issuer, one.call, one.call);
  const live = one.open("/console/live", { cookie, origin: URL_OF_BOTH });
  await once(live, "open");
  const closed = once(live, "close");
  const now = Math.floor(Date.now() / 1_000);
  const events = { "http://schemas.openid.net/event/backchannel-logout": {} };
  const own = { iss: issuer.url, aud: CLIENT.clientId, iat: now, exp: now + 120, jti: "1" };
  const token = issuer.sign(
    { ...own, events, sub: "ada", sid: "session-1" },
    { typ: "logout+jwt" },
  );
  const answer = await other.call("POST", "/console/oidc/backchannel", `logout_token=${token}`, {
    origin: null,
    "sec-fetch-site": null,
    "content-type": "application/x-www-form-urlencoded",
  });
  assert.equal(answer.status, 200);
  assert.equal((await closed)[0], 4401);
  for (const { call } of [one, other]) assert.equal(await readStatus(call, cookie), 401);
});

test("while Redis is down the console says so, and nobody is signed out", options, async (t) => {
  const { redis, port, one } = await startTwo(t);
  const cookie = await one.signIn("notify");
  const isRefused = ({ status, headers, body }: Answer): void => {
    assert.deepEqual([status, body.reason], [503, "sessions_unavailable"]);
    assert.match(body.detail, /Nobody is signed out/);
    assert.equal(headers.get("retry-after"), "5");
    assert.deepEqual(headers.getSetCookie(), [], "the cookie stays");
  };
  await killRedis(redis);
  isRefused(await one.call("GET", "/console/session", undefined, { cookie }));
  isRefused(await one.call("POST", SAMPLES, {}, { cookie }));
  isRefused(await one.call("POST", "/console/login", { service: "notify", token: TOKEN }));
  isRefused(await one.call("POST", "/console/logout", {}, { cookie }));
  const config = await one.call("GET", "/console/config");
  assert.equal(config.status, 200, "the page still loads");
  const [error] = (await once(
    one.open("/console/live", { cookie, origin: URL_OF_BOTH }),
    "error",
  )) as [Error];
  assert.match(error.message, /503/);
  await startRedis(t, port);
  await waitFor(async () => (await readStatus(one.call, cookie)) === 401);
  const again = await one.signIn("notify");
  assert.equal(await readStatus(one.call, again), 200);
});

test("an expiring token is renewed once, however many consoles need it", options, async (t) => {
  const { issuer, one, other } = await startTwo(t);
  const cookie = await signInWith(issuer, one.call, one.call);
  for (const console of [one, other]) console.advance(290_000);
  const answers = await Promise.all(
    [one, other, one, other].map(({ call }) => call("GET", SAMPLES, undefined, { cookie })),
  );
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200],
  );
  assert.equal(issuer.countRenewals(), 1);
});
