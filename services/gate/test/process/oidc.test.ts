// Routes with browser sign-in at the real gateway: renewal, outages, rotated keys, wrong tokens, sign-out by the provider.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { makeFolder, runtimesOfRules } from "../fixture/gate-process.ts";
import { navigate, readCookies } from "../fixture/browser.ts";
import { CLIENT_ID, startIssuer } from "../fixture/oidc-issuer.ts";
import { serve } from "../fixture/serve.ts";
import { shareGate, type SharedGate } from "../fixture/shared-gate.ts";

const EVENT = "http://schemas.openid.net/event/backchannel-logout";
const now = (): number => Math.floor(Date.now() / 1_000);

async function startUpstream(context: TestContext): Promise<string> {
  const server = createServer(({ headers }, response) => {
    const { "x-user-id": user, "x-user-roles": roles, cookie } = headers;
    response.end(JSON.stringify({ user, roles, cookie }));
  });
  return await serve(context, server);
}

async function start(
  context: TestContext,
  shared: SharedGate,
  more = {},
  metadata?: Record<string, unknown>,
) {
  const issuer = await startIssuer(context);
  if (metadata !== undefined) issuer.metadata = metadata;
  const auth = {
    type: "oidc",
    issuer: issuer.url,
    client_id: CLIENT_ID,
    allow_insecure: true,
    ...more,
  };
  const target = await startUpstream(context);
  let gate = await shared.use({ routes: [{ prefix: "/app", target, auth }] });
  const get = (path: string, cookie = ""): Promise<Response> =>
    navigate(new URL(path, gate.url), cookie);
  const follow = async (answer: Response, cookie = ""): Promise<Response> =>
    get(answer.headers.get("location") ?? assert.fail(`${answer.status}`), cookie);
  return {
    issuer,
    get,
    /** The response to the callback of a sign-in. */
    finishSignIn: async (): Promise<Response> => {
      const login = await follow(await get("/app"));
      const to = new URL(login.headers.get("location") ?? assert.fail()).searchParams;
      issuer.nonce = to.get("nonce") ?? "";
      const callback = `/_platform/oidc/callback?code=c&state=${to.get("state")}`;
      return get(callback, readCookies(login));
    },
    notify: async (claims: object, header?: object): Promise<number> => {
      const own = { iss: issuer.url, aud: CLIENT_ID, iat: now(), exp: now() + 120 };
      const jti = String(Math.random());
      const token = issuer.sign({ ...own, jti, events: { [EVENT]: {} }, ...claims }, header);
      const body = new URLSearchParams({ logout_token: token });
      const url = `${gate.url}/_platform/oidc/backchannel`;
      return (await fetch(url, { method: "POST", body })).status;
    },
    restart: async (): Promise<void> => {
      gate = await shared.restart("SIGTERM");
    },
  };
}

for (const runtime of runtimesOfRules) {
  const shared = shareGate({ runtime, config: { workers: 2 } });

  test(`a session is renewed once for parallel requests, and survives an outage of the provider (${runtime.name})`, async (context) => {
    const { issuer, get, finishSignIn } = await start(context, shared);
    // Sessions are due immediately.
    issuer.expiresIn = 0;
    const cookie = readCookies(await finishSignIn());
    const answers = await Promise.all(Array.from({ length: 30 }, () => get("/app", cookie)));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    assert.equal(issuer.grants.refresh_token, 1);
    const renewed = readCookies(answers[0]!);
    assert.notEqual(renewed, "");

    await issuer.stop();
    const during = await get("/app", renewed);
    assert.equal(during.status, 200);
    assert.deepEqual(await during.json(), { user: "ada" });
    assert.equal(readCookies(during), "");
    await issuer.listen(issuer.port);
    const after = await get("/app", renewed);
    assert.equal(after.status, 200);
    assert.notEqual(readCookies(after), "");
    assert.equal(issuer.grants.refresh_token, 2);
  });

  test(`sign-ins continue after a rotation of keys, tokens that are not valid are refused (${runtime.name})`, async (context) => {
    const { issuer, get, finishSignIn } = await start(context, shared);
    assert.equal((await get("/app", readCookies(await finishSignIn()))).status, 200);
    // To another algorithm, too.
    issuer.rotate(0, "EdDSA");
    const rotated = await finishSignIn();
    assert.equal(rotated.status, 303);
    assert.equal((await get("/app", readCookies(rotated))).status, 200);
    const wrong: [claims: Record<string, unknown>, header?: Record<string, unknown>][] = [
      [{ aud: "another-client" }],
      [{ iss: "https://evil.example" }],
      [{ exp: now() - 600 }],
      [{}, { alg: "none" }],
      [{}, { alg: "HS256" }],
      [{}, { alg: "ES256" }],
      [{}, { kid: "unknown" }],
    ];
    for (const [claims, header = {}] of wrong) {
      Object.assign(issuer, { claims, header });
      const refused = await finishSignIn();
      const what = JSON.stringify([claims, header]);
      assert.ok(refused.status >= 400, `${what}: ${refused.status}`);
      assert.equal(readCookies(refused), "", what);
      assert.doesNotMatch(await refused.text(), /evil|another-client|unknown/);
    }
  });

  test(`a logout token of the provider ends sessions, once, and they stay ended (${runtime.name})`, async (context) => {
    const { issuer, get, finishSignIn, notify, restart } = await start(context, shared);
    const signIn = async (sid: string): Promise<string> => {
      issuer.sid = sid;
      return readCookies(await finishSignIn());
    };
    const one = await signIn("session-1");
    const two = await signIn("session-2");
    const isLive = async (cookie: string): Promise<boolean> =>
      (await get("/app", cookie)).status === 200;
    const wrong: [claims: object, header?: object][] = [
      [{ sub: "ada", events: {} }],
      [{ sub: "ada", nonce: "n" }],
      [{ sub: "ada", aud: "another-client" }],
      [{ sub: "ada", iss: "https://evil.example" }],
      [{ sub: "ada", exp: now() - 600 }],
      [{ sub: "ada", jti: undefined }],
      [{}],
      [{ sub: "ada" }, { alg: "none" }],
      [{ sub: "ada" }, { alg: "HS256" }],
      [{ sub: "ada" }, { kid: "unknown" }],
    ];
    for (const [claims, header] of wrong) {
      assert.equal(await notify(claims, header), 400, JSON.stringify([claims, header]));
    }
    assert.deepEqual([await isLive(one), await isLive(two)], [true, true]);

    assert.equal(await notify({ sub: "ada", sid: "session-1", jti: "n1" }), 200);
    assert.deepEqual([await isLive(one), await isLive(two)], [false, true]);
    assert.equal(await notify({ sub: "ada", jti: "n1" }), 400, "a token is valid once");
    assert.equal(await isLive(two), true);
    assert.equal(await notify({ sub: "ada" }, { typ: "logout+jwt" }), 200);
    assert.equal(await isLive(two), false);
    await restart();
    assert.deepEqual([await isLive(one), await isLive(two)], [false, false]);
  });

  test(`after a sign-out no copy of the cookie opens the session, also after a restart (${runtime.name})`, async (context) => {
    const { get, finishSignIn, restart } = await start(context, shared);
    const [one, two] = [readCookies(await finishSignIn()), readCookies(await finishSignIn())];
    const out = await get("/_platform/oidc/logout", one);
    assert.equal(out.status, 303);
    assert.equal(readCookies(out), "");
    const readStatuses = () =>
      Promise.all([one, two].map(async (cookie) => (await get("/app", cookie)).status));
    assert.deepEqual(await readStatuses(), [303, 200]);
    await restart();
    assert.deepEqual(await readStatuses(), [303, 200]);
  });

  test(`a sign-out tells the provider whose it is, so that it need not ask (${runtime.name})`, async (context) => {
    const metadata = { end_session_endpoint: "https://id.example/end" };
    const { issuer, get, finishSignIn } = await start(context, shared, {}, metadata);
    const cookie = readCookies(await finishSignIn());
    const out = await get("/_platform/oidc/logout", cookie);
    const to = new URL(out.headers.get("location") ?? assert.fail());
    assert.equal(`${to.origin}${to.pathname}`, metadata.end_session_endpoint);
    assert.equal(to.searchParams.get("client_id"), CLIENT_ID);
    const [, claims = ""] = (to.searchParams.get("id_token_hint") ?? "").split(".");
    const { iss, sub } = JSON.parse(Buffer.from(claims, "base64url").toString());
    assert.deepEqual({ iss, sub }, { iss: issuer.url, sub: "ada" });
  });

  test(`a renewal takes away what the provider took away, and is for the same user (${runtime.name})`, async (context) => {
    const { issuer, get, finishSignIn } = await start(context, shared);
    issuer.expiresIn = 0;
    issuer.claims = { tenant: "acme" };
    issuer.accessClaims = { sub: "ada@internal", roles: ["admin", "dev"] };
    const first = readCookies(await finishSignIn());
    const renewed = await get("/app", first);
    assert.deepEqual(await renewed.json(), { user: "ada", roles: "admin,dev" });
    issuer.accessClaims = undefined;
    const opaque = await get("/app", readCookies(renewed));
    assert.deepEqual(await opaque.json(), { user: "ada", roles: "admin,dev" });
    issuer.accessClaims = { sub: "ada@internal" };
    const demoted = await get("/app", readCookies(opaque));
    assert.deepEqual(await demoted.json(), { user: "ada" });
    issuer.claims = { sub: "eve" };
    const other = await get("/app", readCookies(demoted));
    assert.equal(other.status, 303);
    assert.match(other.headers.get("location") ?? "", /\/login\?/);
  });

  test(`a browser that restores many pages keeps eight sign-ins, of which each can be finished (${runtime.name})`, async (context) => {
    const { issuer, get, finishSignIn } = await start(context, shared);
    await finishSignIn();
    const to = (await get("/app")).headers.get("location") ?? assert.fail();
    const jar = new Map<string, string>();
    const nonces = new Map<string, string>();
    for (let page = 0; page < 20; page++) {
      const login = await get(to, [...jar].map(([name, value]) => `${name}=${value}`).join("; "));
      for (const cookie of login.headers.getSetCookie()) {
        const [name = "", value = ""] = cookie.split(";", 1)[0]!.split("=");
        if (value === "") jar.delete(name);
        else jar.set(name, value);
      }
      const query = new URL(login.headers.get("location") ?? assert.fail()).searchParams;
      nonces.set(query.get("state") ?? "", query.get("nonce") ?? "");
    }
    assert.equal(jar.size, 8);
    const cookies = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const statuses: number[] = [];
    for (const [state, nonce] of nonces) {
      issuer.nonce = nonce;
      statuses.push((await get(`/_platform/oidc/callback?code=c&state=${state}`, cookies)).status);
    }
    assert.deepEqual(statuses, [...Array<number>(12).fill(403), ...Array<number>(8).fill(303)]);
  });

  test(`the client's secret is sent as the provider accepts it, its responses are bounded (${runtime.name})`, async (context) => {
    const secretFile = join(makeFolder(context), "secret");
    writeFileSync(secretFile, "s3cret", { mode: 0o600 });
    const settings = { client_secret_file: secretFile };
    const first = await start(context, shared, settings);
    assert.equal((await first.finishSignIn()).status, 303);
    const basic = `Basic ${Buffer.from(`${CLIENT_ID}:s3cret`).toString("base64")}`;
    assert.deepEqual(first.issuer.credentials, { header: basic, body: null });
    const posting = await start(context, shared, settings, {
      token_endpoint_auth_methods_supported: ["client_secret_post"],
    });
    assert.equal((await posting.finishSignIn()).status, 303);
    assert.deepEqual(posting.issuer.credentials, { header: undefined, body: "s3cret" });
    const { get } = await start(context, shared, settings, { padding: "x".repeat(2_000_000) });
    const to = (await get("/app")).headers.get("location") ?? assert.fail();
    assert.equal((await get(to)).status, 503);
  });

  test(`over TLS no other host can set the cookie of a sign-in, which leads only to this host (${runtime.name})`, async (context) => {
    const issuer = await startIssuer(context);
    const auth = { type: "oidc", issuer: issuer.url, client_id: CLIENT_ID, allow_insecure: true };
    const gate = await shared.use({
      trusted_proxies: ["127.0.0.1"],
      routes: [{ prefix: "/app", target: await startUpstream(context), auth }],
    });
    // As a proxy that ends TLS.
    const proxied = { "X-Forwarded-Proto": "https", "X-Forwarded-Host": "app.example" };
    const get = (path: string, cookie = ""): Promise<Response> =>
      navigate(new URL(path, gate.url), cookie, proxied);
    const begin = (await get("/app")).headers.get("location") ?? assert.fail();
    const client = new URL(begin, gate.url).searchParams.get("client");
    for (const [to, expected] of [
      ["/app?x=%C3%BC", "/app?x=%C3%BC"],
      ["//evil.example", "/"],
      ["/\\evil.example", "/"],
      ["https://evil.example", "/"],
      ["/\t/evil.example", "/"],
      ["/\u{fc}", "/"],
      ["", "/"],
    ] as const) {
      const query = new URLSearchParams({ client: client ?? "", to });
      const login = await get(`/_platform/oidc/login?${query.toString()}`);
      const [pending = ""] = login.headers.getSetCookie();
      assert.match(
        pending,
        /^__Host-gate_signin_[0-9a-f]{16}=[^;]+; Path=\/; Secure; HttpOnly; SameSite=Lax;/,
      );
      const provider = new URL(login.headers.get("location") ?? assert.fail()).searchParams;
      assert.equal(provider.get("redirect_uri"), "https://app.example/_platform/oidc/callback");
      issuer.nonce = provider.get("nonce") ?? "";
      const callback = `/_platform/oidc/callback?code=c&state=${provider.get("state")}`;
      const cookie = readCookies(login);
      // A sibling host can set a cookie without the prefix.
      assert.equal((await get(callback, cookie.replace("__Host-", ""))).status, 403);
      const done = await get(callback, cookie);
      assert.deepEqual([done.status, done.headers.get("location")], [303, expected], to);
      const session = readCookies(done);
      const answer = await get("/app", `a=1; ${cookie}; ${session}`);
      assert.deepEqual(await answer.json(), { user: "ada", cookie: "a=1" });
    }
  });
}
