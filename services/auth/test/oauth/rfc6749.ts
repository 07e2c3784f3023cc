// RFC 6749, The OAuth 2.0 Authorization Framework.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "@platform/kernel/time";
import { onEachDatabase } from "../databases.ts";
import { Browser } from "@platform/testing/browser";
import { bindClient, startHost, USER_ID, type Host } from "./host.ts";
import {
  authorize,
  buildAuthorizeUrl,
  CALLBACK,
  createPkce,
  introspect,
  obtainCode,
  obtainTokens,
  post,
  postToken,
  readClaims,
  refresh,
  register,
  type TestClient,
} from "./relying-party.ts";

onEachDatabase((makeUrl) => {
  let host: Host;
  let client: TestClient;
  let aheadMs = 0;
  before(async () => {
    const clock = { ...systemClock, now: () => Date.now() + aheadMs };
    host = await startHost({ url: await makeUrl(), clock });
    client = await register(host, { acting_roles: ["reader"] });
  });
  after(() => host.close());

  test("2.3.1: a wrong secret, an unknown client and missing credentials are invalid_client", async () => {
    const form = { grant_type: "client_credentials" };
    const wrong = { ...client, client_secret: "wrong" };
    const unknown = { client_id: "nobody", client_secret: "x" };
    for (const as of [wrong, unknown]) {
      const { status, body, headers } = await postToken(host, form, { as });
      assert.equal(status, 401);
      assert.equal(body["error"], "invalid_client");
      assert.match(headers.get("www-authenticate") ?? "", /^Basic/);
    }
    const silent = await postToken(host, form);
    assert.equal(silent.status, 401);
    assert.equal(silent.body["error"], "invalid_client");
    const elsewhere = await register(host, { grant_types: ["authorization_code"] });
    const unauthorized = await postToken(host, form, { as: elsewhere });
    assert.equal(unauthorized.status, 400);
    assert.equal(unauthorized.body["error"], "unauthorized_client");
    const bare = await postToken(host, { ...form, ...client }, { as: client });
    assert.equal(bare.body["error"], "invalid_request", "one mechanism only");
    const posted = await register(host, { token_endpoint_auth_method: "client_secret_post" });
    assert.equal((await postToken(host, { ...form, ...posted })).status, 200);
  });

  test("3.2: responses must not be cached; other methods are rejected", async () => {
    const { headers } = await postToken(host, { grant_type: "client_credentials" }, { as: client });
    assert.match(headers.get("cache-control") ?? "", /no-store/);
    assert.equal(headers.get("pragma"), "no-cache", "section 5.1");
    const got = await fetch(`${host.origin}/api/v1/auth/token`);
    assert.equal(got.status, 405);
    await got.arrayBuffer();
  });

  test("3.2: repeated parameters, unknown grant types, oversized bodies and other content types are rejected", async () => {
    const twice = "grant_type=client_credentials&grant_type=client_credentials";
    const cases = [
      { form: twice, error: "invalid_request" },
      { form: "grant_type=magic", error: "unsupported_grant_type" },
      { form: "", error: "invalid_request" },
      { form: `grant_type=client_credentials&x=${"a".repeat(60_000)}`, error: "invalid_request" },
      {
        form: '{"grant_type":"client_credentials"}',
        error: "invalid_request",
        headers: { "content-type": "application/json" },
      },
    ];
    for (const { form, error, headers } of cases) {
      const answer = await post(host, "/api/v1/auth/token", form, {
        as: client,
        ...(headers === undefined ? {} : { headers }),
      });
      assert.equal(answer.status, 400, form.slice(0, 40));
      assert.equal(answer.body["error"], error, form.slice(0, 40));
    }
  });

  test("3.3: the issued scope is the requested one limited by client and roles", async () => {
    const narrow = await register(host, { scope: "orders.read" });
    const ask = async (as: TestClient, scope?: string): Promise<unknown> => {
      const form = { grant_type: "client_credentials", ...(scope === undefined ? {} : { scope }) };
      const { body } = await postToken(host, form, { as });
      return body["error"] ?? body["scope"];
    };
    assert.equal(await ask(narrow, "orders.read"), undefined, "no role, no scope");
    await bindClient(host, narrow.client_id);
    await new Promise((resolve) => setTimeout(resolve, 1_050));
    assert.equal(await ask(narrow, "orders.read"), "orders.read");
    assert.equal(await ask(narrow), "orders.read", "without a scope: all that is permitted");
    assert.equal(await ask(narrow, "orders.write"), "invalid_scope");
    assert.equal(await ask(narrow, 'bad"scope'), "invalid_scope");
    const { scope } = await obtainTokens(host, client);
    assert.equal(scope, "openid offline_access profile email orders.read", "Ada may not write");
  });

  test("4.1.2.1: errors are returned to the client at registered redirect URIs only", async () => {
    const { challenge } = createPkce();
    const pkce = { code_challenge: challenge, code_challenge_method: "S256" };
    host.answer = "deny";
    const denied = await authorize(host, client, { ...pkce, state: "s1" });
    host.answer = "agree";
    assert.equal(denied.get("error"), "access_denied");
    assert.equal(denied.get("state"), "s1");
    assert.equal(denied.get("iss"), host.issuer, "RFC 9207");
    for (const redirect_uri of [
      `${CALLBACK}/more`,
      "http://evil.example/",
      "javascript:alert(1)",
    ]) {
      const url = new URL("/api/v1/auth/authorize", host.origin);
      url.search = new URLSearchParams({
        client_id: client.client_id,
        response_type: "code",
        redirect_uri,
        scope: "openid",
        ...pkce,
      }).toString();
      const answer = await fetch(url, { redirect: "manual", headers: { accept: "text/html" } });
      const page = await answer.text();
      assert.equal(answer.status, 400);
      assert.equal(answer.headers.get("location"), null);
      assert.match(answer.headers.get("content-security-policy") ?? "", /frame-ancestors 'none'/);
      assert.doesNotMatch(page, /<script/);
    }
    const implicit = await new Browser().open(
      buildAuthorizeUrl(host, client, { ...pkce, response_type: "token" }),
      (url) => url.href.startsWith(CALLBACK),
    );
    assert.match(implicit.url.hash, /error=unsupported_response_type/);
  });

  test("4.1.3: a code is valid for its client and redirect_uri for one minute", async () => {
    const other = await register(host);
    const form = await obtainCode(host, client);
    const attempts = [
      [{ ...form }, other],
      [{ ...form, redirect_uri: "http://localhost:9/other" }, client],
      [{ ...form, code: "unknown" }, client],
    ] as const;
    for (const [attempt, as] of attempts) {
      assert.equal((await postToken(host, attempt, { as })).body["error"], "invalid_grant");
    }
    assert.equal((await postToken(host, form, { as: client })).status, 200);
  });

  test("4.1.2: replaying a code revokes the tokens issued for it", async () => {
    const form = await obtainCode(host, client);
    const { body } = await postToken(host, form, { as: client });
    const access = String(body["access_token"]);
    assert.equal((await postToken(host, form, { as: client })).body["error"], "invalid_grant");
    assert.equal((await introspect(host, client, access)).active, true, "a race is forgiven");
    const thief = await register(host);
    aheadMs += 11_000;
    assert.equal((await postToken(host, form, { as: thief })).status, 400);
    assert.equal((await introspect(host, client, access)).active, true, "not the client's doing");
    assert.equal((await postToken(host, form, { as: client })).body["error"], "invalid_grant");
    assert.equal((await introspect(host, client, access)).active, false);
    const late = await refresh(host, client, String(body["refresh_token"]));
    assert.equal(late.body["error"], "invalid_grant");
  });

  test("6: a refresh token is valid for its client and its scope can only be narrowed", async () => {
    const other = await register(host);
    const { refresh_token } = await obtainTokens(host, client);
    assert.equal((await refresh(host, other, refresh_token)).body["error"], "invalid_grant");
    const more = { grant_type: "refresh_token", refresh_token, scope: "openid orders.write" };
    assert.equal((await postToken(host, more, { as: client })).body["error"], "invalid_scope");
    const less = { ...more, scope: "orders.read" };
    const answer = await postToken(host, less, { as: client });
    assert.equal(answer.body["scope"], "orders.read");
  });

  test("6: without offline_access there is no refresh token", async () => {
    const { refresh_token } = await obtainTokens(host, client, { scope: "openid orders.read" });
    assert.equal(refresh_token, undefined);
  });

  test("10.4: a lost response can be repeated; a later second use ends the family", async () => {
    const { refresh_token } = await obtainTokens(host, client);
    const first = await refresh(host, client, refresh_token);
    aheadMs += 20_000;
    const again = await refresh(host, client, refresh_token);
    assert.equal(again.body["refresh_token"], first.body["refresh_token"]);
    assert.notEqual(again.body["access_token"], first.body["access_token"]);
    aheadMs += 11_000;
    const stolen = await refresh(host, client, refresh_token);
    assert.equal(stolen.body["error"], "invalid_grant");
    for (const { body } of [first, again]) {
      const access = String(body["access_token"]);
      assert.equal((await introspect(host, client, access)).active, false);
    }
    const successor = await refresh(host, client, String(first.body["refresh_token"]));
    assert.equal(successor.body["error"], "invalid_grant");
  });

  test("10.4: the grace period ends when the successor is used", async () => {
    const { refresh_token } = await obtainTokens(host, client);
    const first = await refresh(host, client, refresh_token);
    const second = await refresh(host, client, String(first.body["refresh_token"]));
    assert.equal(second.status, 200);
    assert.equal((await refresh(host, client, refresh_token)).body["error"], "invalid_grant");
    const newest = await refresh(host, client, String(second.body["refresh_token"]));
    assert.equal(newest.body["error"], "invalid_grant");
  });

  test("a disabled user gets no more tokens", async () => {
    const { refresh_token } = await obtainTokens(host, client);
    const set = (disabled: number): Promise<unknown> =>
      host.database.db
        .updateTable("auth_users")
        .set({ disabled })
        .where("id", "=", USER_ID)
        .execute();
    await set(1);
    assert.equal((await refresh(host, client, refresh_token)).body["error"], "invalid_grant");
    await set(0);
    assert.equal((await refresh(host, client, refresh_token)).status, 200);
  });

  test("tokens contain the roles at issue time", async () => {
    const tokens = await obtainTokens(host, client);
    assert.deepEqual(readClaims(tokens.access_token)["roles"], ["reader"]);
    const { db } = host.database;
    await db.deleteFrom("auth_role_bindings").where("subject_id", "=", USER_ID).execute();
    const { body } = await refresh(host, client, tokens.refresh_token);
    assert.deepEqual(readClaims(String(body["access_token"]))["roles"], []);
    assert.equal(body["scope"], "openid offline_access profile email");
    await db
      .insertInto("auth_role_bindings")
      .values({ role: "reader", subject_kind: "user", subject_id: USER_ID })
      .execute();
  });
});
