// Console sessions of one service: sign-in, expiry, bounds, and attacks on them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PlatformError } from "@platform/kernel/errors";
import { readSetCookie, startStage, TOKEN } from "../stage.ts";

const HOUR_MS = 3_600_000;

test("a session begins with the token, acts for it, and ends", async (t) => {
  const { call, signIn } = await startStage(t);
  const before = await call("GET", "/console/session");
  assert.deepEqual([before.status, before.body.reason], [401, "no_session"]);
  const cookie = await signIn();
  const session = await call("GET", "/console/session", undefined, { cookie });
  assert.equal(session.status, 200);
  assert.deepEqual(session.body.user, { id: "operator", name: "operator" });
  assert.deepEqual(session.body.services, ["notify"]);
  assert.equal(session.body.is_admin, true);
  const read = await call("GET", "/api/v1/samples", undefined, { cookie });
  assert.deepEqual([read.status, read.body.caller], [200, "operator"]);
  const write = await call("POST", "/api/v1/samples", {}, { cookie });
  assert.equal(write.status, 200);

  const out = await call("POST", "/console/logout", {}, { cookie });
  assert.deepEqual([out.status, out.body.end_session_url], [200, null]);
  assert.match(out.headers.getSetCookie()[0]!, /Max-Age=0/);
  const after = await call("GET", "/api/v1/samples", undefined, { cookie });
  assert.deepEqual([after.status, after.body.reason], [401, "session_expired"]);
});

test("the cookie is out of reach of scripts, other sites and other services", async (t) => {
  const { call } = await startStage(t);
  const answer = await call("POST", "/console/login", { token: TOKEN });
  const [cookie] = answer.headers.getSetCookie();
  assert.match(
    cookie!,
    /^platform_notify_console=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Strict/,
  );
  assert.ok(!cookie!.includes("Domain"));
  const url = "https://mail.example.com";
  const secure = await startStage(t, { publicUrl: url });
  const set = await secure.call("POST", "/console/login", { token: TOKEN }, { origin: url });
  assert.match(set.headers.getSetCookie()[0]!, /^__Host-platform_notify_console=.*; Secure/);
});

test("the token is in no answer, no log line and no cookie", async (t) => {
  const { call, log, signIn } = await startStage(t);
  const cookie = await signIn();
  const answers = await Promise.all([
    call("GET", "/console/session", undefined, { cookie }),
    call("GET", "/console/config", undefined, { cookie }),
    call("GET", "/api/v1/samples", undefined, { cookie }),
    call("POST", "/console/login", { token: "wrong-token" }),
    call("POST", "/console/login", { token: TOKEN, other: 1 }),
    call("POST", "/console/logout", {}, { cookie }),
  ]);
  const secret = cookie.split("=")[1]!;
  for (const text of [...answers.map((answer) => answer.text), ...log]) {
    for (const leak of [TOKEN, "wrong-token", secret]) assert.ok(!text.includes(leak), text);
  }
  assert.ok(!cookie.includes(TOKEN));
});

test("a token that was known before the sign-in is not valid after it", async (t) => {
  const { call, signIn } = await startStage(t);
  const planted = `platform_notify_console=${"A".repeat(43)}`;
  const answer = await call("POST", "/console/login", { token: TOKEN }, { cookie: planted });
  assert.notEqual(readSetCookie(answer), planted);
  const used = await call("GET", "/api/v1/samples", undefined, { cookie: planted });
  assert.equal(used.status, 401);
  const first = await signIn();
  await call("POST", "/console/login", { token: TOKEN }, { cookie: first });
  const old = await call("GET", "/api/v1/samples", undefined, { cookie: first });
  assert.equal(old.status, 401, "a new sign-in replaces the session");
});

test("a cookie that is sent twice is not used", async (t) => {
  const { call, signIn } = await startStage(t);
  const cookie = await signIn();
  const twice = `platform_notify_console=${"A".repeat(43)}; ${cookie}`;
  const answer = await call("GET", "/api/v1/samples", undefined, { cookie: twice });
  assert.equal(answer.status, 401);
});

test("a session ends after an hour without requests, and after twelve hours in any case", async (t) => {
  const { advance, call, signIn } = await startStage(t);
  const idle = await signIn();
  advance(HOUR_MS - 1_000);
  assert.equal((await call("GET", "/api/v1/samples", undefined, { cookie: idle })).status, 200);
  advance(HOUR_MS + 1_000);
  assert.equal((await call("GET", "/api/v1/samples", undefined, { cookie: idle })).status, 401);
  const used = await signIn();
  for (let hours = 0.5; hours < 12; hours += 0.5) {
    advance(HOUR_MS / 2);
    const answer = await call("GET", "/api/v1/samples", undefined, { cookie: used });
    if (hours < 11.9) assert.equal(answer.status, 200, `after ${hours} hours`);
  }
  advance(HOUR_MS / 2);
  assert.equal((await call("GET", "/api/v1/samples", undefined, { cookie: used })).status, 401);
});

test("reading the session does not prolong it", async (t) => {
  const { advance, call, signIn } = await startStage(t);
  const cookie = await signIn();
  for (const minutes of [40, 30]) {
    await call("GET", "/console/session", undefined, { cookie });
    advance(minutes * 60_000);
  }
  assert.equal((await call("GET", "/console/session", undefined, { cookie })).status, 401);
});

test("a session ends when the service refuses its token", async (t) => {
  let isRevoked = false;
  const { call, signIn } = await startStage(t, {
    guard: ({ headers }) => {
      if (isRevoked || headers.get("authorization") !== `Bearer ${TOKEN}`) {
        throw new PlatformError("unauthorized", "The token is not valid.");
      }
      return { kind: "operator" };
    },
  });
  const cookie = await signIn();
  isRevoked = true;
  const refused = await call("GET", "/api/v1/samples", undefined, { cookie });
  assert.deepEqual([refused.status, refused.body.reason], [401, "session_expired"]);
  isRevoked = false;
  assert.equal((await call("GET", "/console/session", undefined, { cookie })).status, 401);
});

test("deletions and changes of keys and people require a sign-in of the last ten minutes", async (t) => {
  const { advance, call, signIn, reached } = await startStage(t);
  const cookie = await signIn();
  advance(11 * 60_000);
  const sensitive = [
    ["DELETE", "/api/v1/samples/1"],
    ["POST", "/api/v1/users"],
    ["PATCH", "/api/v1/users/1"],
    ["POST", "/api/users"],
    ["POST", "/api/v1/admin/api-keys"],
    ["PUT", "/api/v1/rbac/roles/a"],
    ["POST", "/api/v1/auth/clients/a/secret"],
    ["POST", "/api/v1/buckets/b/delete"],
  ] as const;
  for (const [method, path] of sensitive) {
    const answer = await call(method, path, {}, { cookie });
    assert.deepEqual([answer.status, answer.body.reason], [401, "recent_sign_in_required"], path);
    assert.match(answer.headers.get("www-authenticate")!, /insufficient_user_authentication/);
  }
  assert.deepEqual(reached, []);
  for (const [method, path] of [
    ["GET", "/api/v1/users"],
    ["POST", "/api/v1/topics/users/publish"],
    ["PUT", "/api/v1/buckets/b/objects/keys"],
    ["POST", "/api/v1/buckets/b/objects/delete"],
  ] as const) {
    const body = method === "GET" ? undefined : {};
    assert.equal((await call(method, path, body, { cookie })).status, 200, path);
  }
  const again = readSetCookie(await call("POST", "/console/login", { token: TOKEN }, { cookie }));
  assert.equal(
    (await call("DELETE", "/api/v1/samples/1", undefined, { cookie: again })).status,
    200,
  );
});

test("ten failed sign-ins of an address lock it for fifteen minutes", async (t) => {
  const { advance, call } = await startStage(t);
  const guess = () => call("POST", "/console/login", { token: "wrong" });
  const answers = await Promise.all(Array.from({ length: 14 }, guess));
  assert.equal(answers.filter(({ status }) => status === 401).length, 10);
  const [locked] = answers.filter(({ status }) => status === 429);
  assert.ok(Number(locked?.headers.get("retry-after")) > 800);
  const right = await call("POST", "/console/login", { token: TOKEN });
  assert.equal(right.status, 429);
  advance(15 * 60_000);
  assert.equal((await call("POST", "/console/login", { token: TOKEN })).status, 200);
});

test("without credentials programs on this machine are the operator, and nobody else", async (t) => {
  const { call, url } = await startStage(t, { hasToken: false });
  const config = await call("GET", "/console/config");
  assert.deepEqual(config.body.sign_in, ["loopback"]);
  const session = await call("GET", "/console/session");
  assert.deepEqual([session.status, session.body.method], [200, "loopback"]);
  assert.equal((await call("POST", "/api/v1/samples", {})).status, 200);
  const host = new URL(url).host.replace("127.0.0.1", "evil.example");
  for (const headers of [
    { host },
    { "x-forwarded-for": "192.0.2.1" },
    { "sec-fetch-site": "cross-site" },
    { origin: "http://evil.example" },
  ]) {
    const refused = await call("POST", "/api/v1/samples", {}, headers);
    assert.equal(refused.status, 403, JSON.stringify(headers));
    const none = await call("GET", "/console/session", undefined, headers);
    assert.notEqual(none.status, 200, JSON.stringify(headers));
  }
  const login = await call("POST", "/console/login", { token: "anything" });
  assert.equal(login.status, 401);
});
