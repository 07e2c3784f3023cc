// Sign-out by identity (OpenID Connect Back-Channel Logout 1.0): valid notices end sessions, others nothing.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { readSetCookie, startStage } from "../stage.ts";
import { start } from "../front/front-stage.ts";
import { CLIENT, startIssuer } from "./issuer.ts";

const EVENT = "http://schemas.openid.net/event/backchannel-logout";

async function startSignedIn(t: TestContext) {
  const issuer = await startIssuer(t);
  const mail = await startStage(t, { id: "notify" });
  const identity = { ...CLIENT, issuer: issuer.url, scopes: ["openid"] };
  const front = await start(t, [{ id: "notify", url: mail.url }], identity);
  const { call } = front;
  const signIn = async (sub: string, sid: string | undefined): Promise<string> => {
    const started = await call("GET", "/console/oidc/start", undefined, {
      "sec-fetch-site": "none",
    });
    const to = new URL(started.headers.get("location")!).searchParams;
    Object.assign(issuer.next, { sub, sid, nonce: to.get("nonce") });
    const back = `/console/oidc/callback?code=c&state=${to.get("state")}`;
    const cookie = readSetCookie(started);
    const ended = await call("GET", back, undefined, { cookie, "sec-fetch-site": "cross-site" });
    assert.equal(ended.headers.get("location"), "/ui/", ended.text);
    const session = ended.headers.getSetCookie().find((one) => one.startsWith("platform_console="));
    return session!.split(";", 1)[0]!;
  };
  const isLive = async (cookie: string): Promise<boolean> =>
    (await call("GET", "/console/session", undefined, { cookie })).status === 200;
  const notify = async (claims: object, header?: object): Promise<number> => {
    const now = Math.floor(Date.now() / 1_000);
    const own = { iss: issuer.url, aud: CLIENT.clientId, iat: now, exp: now + 120, jti: "1" };
    const token = issuer.sign({ ...own, events: { [EVENT]: {} }, ...claims }, header);
    return send(`logout_token=${token}`);
  };
  // Identity is a server: it sends neither Origin nor Sec-Fetch-Site.
  const send = async (body: string): Promise<number> => {
    const answer = await call("POST", "/console/oidc/backchannel", body, {
      origin: null,
      "sec-fetch-site": null,
      "content-type": "application/x-www-form-urlencoded",
    });
    return answer.status;
  };
  return { ...front, signIn, isLive, notify, send };
}

test("a notice ends the session that it names, with its live view", async (t) => {
  const { signIn, isLive, notify, open, url } = await startSignedIn(t);
  const one = await signIn("ada", "session-1");
  const two = await signIn("ada", "session-2");
  const live = open("/console/live", { cookie: one, origin: url });
  await once(live, "open");
  const closed = once(live, "close");
  assert.equal(await notify({ sub: "ada", sid: "session-1" }, { typ: "logout+jwt" }), 200);
  assert.equal((await closed)[0], 4401);
  assert.deepEqual([await isLive(one), await isLive(two)], [false, true]);
});

test("a notice without a session ends all sessions of the user, and of nobody else", async (t) => {
  const { signIn, isLive, notify } = await startSignedIn(t);
  const ada = [await signIn("ada", "session-1"), await signIn("ada", undefined)];
  const bob = await signIn("bob", "session-3");
  assert.equal(await notify({ sub: "ada" }), 200);
  assert.deepEqual(await Promise.all([...ada, bob].map(isLive)), [false, false, true]);
});

test("notices that are not identity's, or not for this client, end nothing", async (t) => {
  const { signIn, isLive, notify, send } = await startSignedIn(t);
  const cookie = await signIn("ada", "session-1");
  const past = Math.floor(Date.now() / 1_000) - 600;
  const wrong: [claims: object, header?: object][] = [
    [{ sub: "ada", events: {} }],
    [{ sub: "ada", events: undefined }],
    [{ sub: "ada", nonce: "n" }],
    [{ sub: "ada", aud: "another-client" }],
    [{ sub: "ada", iss: "https://evil.example" }],
    [{ sub: "ada", exp: past }],
    [{}],
    [{ sub: "ada" }, { alg: "none" }],
    [{ sub: "ada" }, { alg: "HS256" }],
    [{ sub: "ada" }, { kid: "unknown" }],
  ];
  for (const [claims, header] of wrong) {
    assert.equal(await notify(claims, header), 400, JSON.stringify([claims, header]));
  }
  for (const body of ["", "logout_token=", "logout_token=a.b.c", "x".repeat(17_000)]) {
    assert.ok([400, 413].includes(await send(body)), body.slice(0, 20));
  }
  assert.equal(await isLive(cookie), true);
});
