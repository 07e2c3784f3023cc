// OpenID Connect Core 1.0: requests of applications, and claims about the user.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { onEachDatabase } from "../databases.ts";
import { Browser } from "@platform/testing/browser";
import { startHost, USER_ID, type Host } from "./host.ts";
import {
  authorize,
  buildAuthorizeUrl,
  CALLBACK,
  createPkce,
  obtainTokens,
  post,
  register,
  toAnswer,
  type Answer,
  type TestClient,
} from "./relying-party.ts";

const USERINFO_PATH = "/api/v1/auth/userinfo";

onEachDatabase((makeUrl) => {
  let host: Host;
  let client: TestClient;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
    client = await register(host);
  });
  after(() => host.close());

  const askUserinfo = async (init: RequestInit): Promise<Answer> =>
    toAnswer(await fetch(`${host.origin}${USERINFO_PATH}`, init));

  test("3.1.2.1: the authorization endpoint accepts a posted form like a query", async () => {
    const { challenge } = createPkce();
    const url = buildAuthorizeUrl(host, client, {
      code_challenge: challenge,
      code_challenge_method: "S256",
      state: "a b&c=d",
      resource: host.issuer,
    });
    const posted = await fetch(`${host.origin}${url.pathname}`, {
      method: "POST",
      redirect: "manual",
      body: url.searchParams,
    });
    assert.equal(posted.status, 303);
    const next = new URL(posted.headers.get("location")!, host.issuer);
    const landing = await new Browser(host.origin).open(next, (at) => at.href.startsWith(CALLBACK));
    assert.ok(landing.url.searchParams.has("code"), landing.url.href);
    assert.equal(landing.url.searchParams.get("state"), "a b&c=d");
  });

  test("3.1.2.1: posted forms too long for a URL and other content types are rejected", async () => {
    const path = `${host.origin}/api/v1/auth/authorize`;
    const long = await toAnswer(
      await fetch(path, {
        method: "POST",
        body: new URLSearchParams({ state: "x".repeat(9_000) }),
      }),
    );
    assert.equal(long.status, 413);
    assert.equal(long.body["error"], "invalid_request");
    const json = await toAnswer(await fetch(path, { method: "POST", body: "{}" }));
    assert.equal(json.status, 400);
  });

  test("5.3.1: userinfo accepts the token in the header or a posted form, not in both and not in the URL", async () => {
    const { access_token: token } = await obtainTokens(host, client);
    const authorization = `Bearer ${token}`;
    const body = new URLSearchParams({ access_token: token });
    for (const init of [
      { headers: { authorization } },
      { method: "POST", headers: { authorization } },
      { method: "POST", body },
      { method: "POST", headers: { authorization }, body: new URLSearchParams() },
    ]) {
      const answer = await askUserinfo(init);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      assert.equal(answer.body["sub"], USER_ID);
      assert.match(answer.headers.get("cache-control") ?? "", /no-store/);
    }
    const both = await askUserinfo({ method: "POST", headers: { authorization }, body });
    assert.equal(both.status, 400);
    assert.equal(both.body["error"], "invalid_request");
    const inAddress = await fetch(`${host.origin}${USERINFO_PATH}?access_token=${token}`);
    assert.equal(inAddress.status, 401);
    await inAddress.arrayBuffer();
  });

  test("5.3.3: userinfo challenges as RFC 6750 section 3 requires", async () => {
    const none = await askUserinfo({});
    assert.equal(none.status, 401);
    assert.equal(
      none.headers.get("www-authenticate"),
      `Bearer realm="${host.issuer}", DPoP realm="${host.issuer}", algs="ES256 Ed25519 EdDSA"`,
    );
    const wrong = await askUserinfo({ headers: { authorization: "Bearer nonsense" } });
    assert.equal(wrong.status, 401);
    assert.equal(
      wrong.headers.get("www-authenticate"),
      `Bearer realm="${host.issuer}", error="invalid_token"`,
    );
    const { access_token } = await obtainTokens(host, client, { scope: "orders.read" });
    const narrow = await askUserinfo({ headers: { authorization: `Bearer ${access_token}` } });
    assert.equal(narrow.status, 403);
    assert.equal(
      narrow.headers.get("www-authenticate"),
      `Bearer realm="${host.issuer}", error="insufficient_scope", scope="openid"`,
    );
  });

  test("5.4: userinfo returns the claims of the scope and no others", async () => {
    for (const [scope, names] of [
      ["openid", ["sub"]],
      ["openid email", ["email", "email_verified", "sub"]],
      ["openid profile", ["name", "preferred_username", "sub"]],
    ] as const) {
      const { access_token } = await obtainTokens(host, client, { scope });
      const { body } = await askUserinfo({ headers: { authorization: `Bearer ${access_token}` } });
      assert.deepEqual(Object.keys(body).toSorted(), names, scope);
    }
  });

  test("5.5: claims requested by name are returned where they were requested", async () => {
    const claims = JSON.stringify({
      userinfo: { name: { essential: true }, shoe_size: null },
      id_token: { email: null, auth_time: { essential: true }, amr: null, acr: null },
    });
    const scope = "openid offline_access";
    const tokens = await obtainTokens(host, client, { scope, claims });
    const idClaims = JSON.parse(
      Buffer.from(tokens.id_token.split(".")[1]!, "base64url").toString(),
    ) as Record<string, unknown>;
    assert.equal(idClaims["email"], "ada@example.com");
    assert.equal(idClaims["name"], undefined);
    assert.equal(typeof idClaims["auth_time"], "number");
    assert.deepEqual(idClaims["amr"], ["pwd"]);
    assert.equal(idClaims["acr"], "1");
    const { body } = await askUserinfo({
      headers: { authorization: `Bearer ${tokens.access_token}` },
    });
    assert.deepEqual(body, { sub: USER_ID, name: "Ada Lovelace" });
  });

  test("11: offline_access is granted with the user's consent, with or without prompt=consent, and only if allowed", async () => {
    const scope = "openid offline_access";
    const ask = (as: TestClient, more: Record<string, string>) =>
      obtainTokens(host, as, { scope, ...more });
    assert.ok((await ask(client, { prompt: "" })).refresh_token);
    const pushed = await post(
      host,
      "/api/v1/auth/par",
      {
        client_id: client.client_id,
        response_type: "code",
        redirect_uri: CALLBACK,
        scope,
        code_challenge: createPkce().challenge,
        code_challenge_method: "S256",
      },
      { as: client },
    );
    const url = new URL("/api/v1/auth/authorize", host.issuer);
    url.searchParams.set("client_id", client.client_id);
    url.searchParams.set("request_uri", String(pushed.body["request_uri"]));
    const browser = new Browser(host.origin);
    const back = await browser.open(url, (at) => at.href.startsWith(CALLBACK));
    assert.ok(back.url.searchParams.has("code"), back.url.href);
    for (const more of [{ scope: "openid email" }, { grant_types: ["authorization_code"] }]) {
      const narrow = await register(host, more);
      assert.equal((await ask(narrow, { prompt: "" })).refresh_token, undefined);
    }
    host.answer = "deny";
    const denied = await authorize(host, client, {
      scope,
      prompt: "",
      code_challenge: createPkce().challenge,
      code_challenge_method: "S256",
    });
    host.answer = "agree";
    assert.equal(denied.get("error"), "access_denied");
  });

  test("3.1.2.6: errors are returned to the application at registered redirect URIs only", async () => {
    const { challenge } = createPkce();
    const good = { code_challenge: challenge, code_challenge_method: "S256", state: "s" };
    for (const [params, error] of [
      [{ response_mode: "pigeon" }, "unsupported_response_mode"],
      [{ prompt: "none login" }, "invalid_request"],
      [{ max_age: "-1" }, "invalid_request"],
      [{ claims: "{" }, "invalid_request"],
      [{ id_token_hint: "nonsense" }, "invalid_request"],
      [{ request_uri: "https://app.example/request" }, "request_uri_not_supported"],
      [{ registration: "{}" }, "registration_not_supported"],
      [{ resource: "urn:platform" }, "invalid_target"],
      [{ prompt: "none" }, "login_required"],
      [{ prompt: "create" }, "invalid_request"],
      [
        { claims: '{"id_token":{"acr":{"essential":true,"value":"urn:example:gold"}}}' },
        "unmet_authentication_requirements",
      ],
    ] as const) {
      const given = await authorize(host, client, { ...good, ...params });
      assert.equal(given.get("error"), error, JSON.stringify(params));
      assert.equal(given.get("state"), "s");
      assert.equal(given.get("iss"), host.issuer);
    }
    for (const params of [
      { client_id: "nobody" },
      { redirect_uri: `${CALLBACK}/more` },
      { redirect_uri: "https://evil.example/" },
    ]) {
      const url = buildAuthorizeUrl(host, client, { ...good, ...params });
      const response = await fetch(url, { redirect: "manual", headers: { accept: "text/html" } });
      assert.equal(response.status, 400, JSON.stringify(params));
      assert.match(response.headers.get("content-type") ?? "", /^text\/html/);
      await response.arrayBuffer();
    }
  });
});
