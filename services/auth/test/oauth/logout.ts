// OpenID Connect RP-Initiated Logout and Back-Channel Logout.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet } from "jose";
import { onEachDatabase } from "../databases.ts";
import { Browser } from "@platform/testing/browser";
import { startHost, USER_ID, type Host } from "./host.ts";
import {
  introspect,
  obtainCode,
  postToken,
  readClaims,
  refresh,
  register,
  type TestClient,
} from "./relying-party.ts";

const GOODBYE = "http://localhost:9/goodbye";

onEachDatabase((makeUrl) => {
  let host: Host;
  let client: TestClient;
  const notices: string[] = [];
  /** Statuses of the responses to the next notices. */
  const troubles: number[] = [];
  const listener = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.once("end", () => {
      notices.push(new URLSearchParams(body).get("logout_token") ?? "");
      response.writeHead(troubles.shift() ?? 204).end();
    });
  });
  before(async () => {
    host = await startHost({ url: await makeUrl() });
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    const { port } = listener.address() as AddressInfo;
    client = await register(host, {
      post_logout_redirect_uris: [GOODBYE],
      backchannel_logout_uri: `http://127.0.0.1:${port}/logout`,
      backchannel_logout_session_required: true,
    });
  });
  after(async () => {
    listener.closeAllConnections();
    listener.close();
    await host.close();
  });

  const signIn = async (
    browser: Browser,
  ): Promise<{ access_token: string; refresh_token: string; id_token: string }> => {
    const form = await obtainCode(host, client, {}, browser);
    const { body } = await postToken(host, form, { as: client });
    return body as { access_token: string; refresh_token: string; id_token: string };
  };
  const readNotice = async (): Promise<Record<string, unknown>> => {
    const deadline = Date.now() + 20_000;
    while (notices.length === 0 && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const keys = (await (
      await fetch(`${host.origin}/.well-known/jwks.json`)
    ).json()) as JSONWebKeySet;
    const { payload, protectedHeader } = await jwtVerify(
      notices.shift() ?? "",
      createLocalJWKSet(keys),
      {
        issuer: host.issuer,
        audience: client.client_id,
      },
    );
    assert.equal(protectedHeader.typ, "logout+jwt");
    assert.equal(payload["nonce"], undefined, "it must not pass for an ID token");
    return payload;
  };

  test("a logout by the ID token of the session ends it without a question, notifies the client and returns to it", async () => {
    const browser = new Browser();
    const tokens = await signIn(browser);
    const sid = readClaims(tokens.access_token)["sid"];
    assert.equal(readClaims(tokens.id_token)["sid"], sid, "one name for one session");
    const url = new URL("/api/v1/auth/oauth/logout", host.issuer);
    url.search = new URLSearchParams({
      id_token_hint: tokens.id_token,
      post_logout_redirect_uri: GOODBYE,
      state: "bye",
    }).toString();
    const landing = await browser.open(url, (at) => at.href.startsWith(GOODBYE));
    assert.equal(landing.url.href, `${GOODBYE}?state=bye`);
    const notice = await readNotice();
    assert.equal(notice["sub"], USER_ID);
    assert.equal(notice["sid"], sid);
    assert.ok("http://schemas.openid.net/event/backchannel-logout" in (notice["events"] as object));
    assert.equal((await introspect(host, client, tokens.access_token)).active, false);
    assert.equal(
      (await refresh(host, client, tokens.refresh_token)).body["error"],
      "invalid_grant",
    );
    const rows = await host.database.db
      .selectFrom("auth_sessions")
      .select("id")
      .where("id", "=", String(sid))
      .execute();
    assert.deepEqual(rows, [], "the session itself is over");
    assert.notEqual(readClaims((await signIn(browser)).access_token)["sid"], sid);
  });

  test("an ID token of another session, user or client does not end this session without a question", async () => {
    const browser = new Browser();
    const tokens = await signIn(browser);
    const other = await signIn(new Browser());
    const url = new URL("/api/v1/auth/oauth/logout", host.issuer);
    const named = { id_token_hint: other.id_token, post_logout_redirect_uri: GOODBYE };
    url.search = new URLSearchParams(named).toString();
    const page = await browser.open(url);
    assert.match(page.text, /Do you want to sign out/);
    assert.equal((await introspect(host, client, tokens.access_token)).active, true);
    assert.equal((await introspect(host, client, other.access_token)).active, true);
    const [head, payload, signature] = tokens.id_token.split(".") as [string, string, string];
    const flipped = `${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`;
    url.searchParams.set("id_token_hint", [head, payload, flipped].join("."));
    assert.equal((await browser.open(url)).status, 400);
    assert.equal((await introspect(host, client, tokens.access_token)).active, true);
  });

  test("clients are notified of a session that ends elsewhere", async () => {
    const tokens = await signIn(new Browser());
    const sid = String(readClaims(tokens.access_token)["sid"]);
    await host.oauth.revoker.revokeSession(sid);
    assert.equal((await readNotice())["sid"], sid);
  });

  test("notices to failing clients are retried, rejected ones are not", async () => {
    const refused = String(readClaims((await signIn(new Browser())).access_token)["sid"]);
    const unwell = String(readClaims((await signIn(new Browser())).access_token)["sid"]);
    troubles.push(400);
    await host.oauth.revoker.revokeSession(refused);
    assert.equal((await readNotice())["sid"], refused);
    troubles.push(503);
    await host.oauth.revoker.revokeSession(unwell);
    const first = await readNotice();
    const second = await readNotice();
    assert.equal(first["sid"], unwell);
    assert.equal(second["sid"], unwell);
    assert.notEqual(second["jti"], first["jti"], "each try is a token of its own");
    assert.deepEqual(notices, [], "the refusal stands");
  });

  test("a logout works by a posted form, without a hint, and in another order", async () => {
    const path = "/api/v1/auth/oauth/logout";
    const posted = await fetch(`${host.origin}${path}`, {
      method: "POST",
      redirect: "manual",
      body: new URLSearchParams({ client_id: client.client_id, post_logout_redirect_uri: GOODBYE }),
    });
    assert.equal(posted.status, 303);
    const browser = new Browser();
    await signIn(browser);
    const page = await browser.open(new URL(posted.headers.get("location")!, host.issuer));
    const landing = await browser.submit(page, { logout: "yes" }, (at) =>
      at.href.startsWith(GOODBYE),
    );
    assert.equal(landing.url.href, GOODBYE, "no state was given, and none comes back");
    await readNotice();
    const again = await browser.open(new URL(posted.headers.get("location")!, host.issuer), (at) =>
      at.href.startsWith(GOODBYE),
    );
    assert.equal(again.url.href, GOODBYE, "who is signed out already is not asked");
  });

  test("a browser without a session is redirected, without a form that a script submits", async () => {
    const ask = (parameters: Record<string, string>): Promise<Response> => {
      const url = new URL("/api/v1/auth/oauth/logout", host.origin);
      url.search = new URLSearchParams(parameters).toString();
      return fetch(url, { redirect: "manual" });
    };
    const plain = await ask({});
    assert.equal(plain.status, 303);
    assert.doesNotMatch(await plain.text(), /<form|<script/);
    const done = new URL(plain.headers.get("location")!, host.issuer);
    const page = await new Browser().open(done);
    assert.match(page.text, /You are signed out/);
    const named = { client_id: client.client_id, post_logout_redirect_uri: GOODBYE, state: "bye" };
    assert.equal((await ask(named)).headers.get("location"), `${GOODBYE}?state=bye`);
    const unknown = await ask({ post_logout_redirect_uri: "http://evil.example/" });
    assert.equal(unknown.headers.get("location"), plain.headers.get("location"));
    const foreign = { ...named, post_logout_redirect_uri: "http://evil.example/" };
    assert.equal((await ask(foreign)).status, 400);
  });

  test("a cross-site form does not sign out, and unregistered redirect URIs are not followed", async () => {
    const browser = new Browser();
    const tokens = await signIn(browser);
    const forged = await fetch(`${host.origin}/api/v1/auth/oauth/logout/confirm`, {
      method: "POST",
      body: new URLSearchParams({ logout: "yes", xsrf: "guess" }),
    });
    assert.ok(forged.status >= 400);
    await forged.arrayBuffer();
    assert.equal((await introspect(host, client, tokens.access_token)).active, true);
    const url = new URL("/api/v1/auth/oauth/logout", host.issuer);
    url.search = new URLSearchParams({
      id_token_hint: tokens.id_token,
      post_logout_redirect_uri: "http://evil.example/",
    }).toString();
    const refused = await browser.open(url);
    assert.equal(refused.status, 400);
    assert.match(refused.text, /post_logout_redirect_uri/);
  });

  test("an unreachable client does not keep a session alive", async () => {
    const dead = await register(host, {
      backchannel_logout_uri: "http://127.0.0.1:1/logout",
      backchannel_logout_session_required: true,
    });
    const { body } = await postToken(host, await obtainCode(host, dead), { as: dead });
    const token = String(body["access_token"]);
    await host.oauth.revoker.revokeSession(String(readClaims(token)["sid"]));
    assert.equal((await introspect(host, client, token)).active, false);
  });
});
