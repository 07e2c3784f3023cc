// RFC 7662, Token Introspection; its access rules also apply to RFC 7009, Token Revocation.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { onEachDatabase } from "../databases.ts";
import { addRole, bindClient, startHost, USER_ID, type Host } from "./host.ts";
import {
  introspect,
  obtainTokens,
  post,
  postToken,
  refresh,
  register,
  type TestClient,
} from "./relying-party.ts";

const PATH = "/api/v1/auth/token/introspect";

onEachDatabase((makeUrl) => {
  let host: Host;
  let client: TestClient;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
    client = await register(host);
  });
  after(() => host.close());

  test("2.1: missing and wrong credentials are 401 invalid_client", async () => {
    for (const options of [
      {},
      { as: { ...client, client_secret: "wrong" } },
      { as: { client_id: "nobody", client_secret: "x" } },
      { headers: { authorization: "Basic !!!" } },
      { headers: { authorization: "Negotiate abc" } },
    ]) {
      const { status, body } = await post(host, PATH, { token: "x" }, options);
      assert.equal(status, 401);
      assert.equal(body["error"], "invalid_client");
    }
    const named = await post(host, PATH, { token: "x", client_id: client.client_id });
    assert.equal(named.status, 401, "a confidential client's name alone proves nothing");
  });

  test("2.1: requests without a token, with a repeated token or of another content type are rejected", async () => {
    const as = client;
    assert.equal((await post(host, PATH, {}, { as })).body["error"], "invalid_request");
    assert.equal(
      (await post(host, PATH, "token=a&token=b", { as })).body["error"],
      "invalid_request",
    );
    const json = { "content-type": "application/json" };
    assert.equal((await post(host, PATH, "{}", { as, headers: json })).status, 400);
    const long = await post(host, PATH, `token=${"a".repeat(60_000)}`, { as });
    assert.equal(long.status, 413);
    const got = await fetch(`${host.origin}${PATH}`);
    assert.equal(got.status, 405);
    await got.arrayBuffer();
  });

  test("2.2: a valid access token is described with all of its claims", async () => {
    const tokens = await obtainTokens(host, client);
    const described = await introspect(host, client, tokens.access_token);
    assert.equal(described.active, true);
    assert.equal(described.sub, USER_ID);
    assert.equal(described.username, "Ada");
    assert.equal(described.tenant, "acme");
    assert.equal(described.client_id, client.client_id);
    assert.equal(described.iss, host.issuer);
    assert.equal(described.aud, host.issuer);
    assert.equal(described.token_type, "Bearer");
    assert.equal(described.acr, "1");
    assert.deepEqual(described.amr, ["pwd"]);
    for (const name of ["exp", "iat", "jti", "sid", "scope", "auth_time", "policy_version"]) {
      assert.ok(described[name], name);
    }
  });

  test("2.2: a refresh token is described until it is used", async () => {
    const { refresh_token } = await obtainTokens(host, client);
    const described = await introspect(host, client, refresh_token);
    assert.equal(described.active, true);
    assert.equal(described.client_id, client.client_id);
    assert.equal(described.token_type, undefined);
    await refresh(host, client, refresh_token);
    assert.deepEqual(await introspect(host, client, refresh_token), { active: false });
  });

  test("2.2: any other text is inactive without details", async () => {
    const { access_token } = await obtainTokens(host, client);
    const [head, body, signature] = access_token.split(".") as [string, string, string];
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    const jwk = await exportJWK(publicKey);
    const { kid } = host.keys.current.active;
    const forged = await new SignJWT({ sub: "root", iss: host.issuer, exp: 9_999_999_999 })
      .setProtectedHeader({ alg: "ES256", typ: "at+jwt", kid })
      .sign(privateKey);
    const embedded = await new SignJWT({ sub: "root", iss: host.issuer, exp: 9_999_999_999 })
      .setProtectedHeader({ alg: "ES256", typ: "at+jwt", kid: "x", jwk })
      .sign(privateKey);
    const none = Buffer.from(JSON.stringify({ alg: "none", typ: "at+jwt", kid })).toString(
      "base64url",
    );
    const other = signature.startsWith("A") ? "B" : "A";
    for (const token of [
      "x",
      "a.b.c",
      `${head}.${body}`,
      `${head}.${body}.`,
      `${none}.${body}.`,
      `${none}.${body}.${signature}`,
      `${head}.${body}.${other}${signature.slice(1)}`,
      forged,
      embedded,
      `${access_token}x`,
      "é\u0000",
    ]) {
      assert.deepEqual(
        await introspect(host, client, token),
        { active: false },
        token.slice(0, 30),
      );
    }
  });

  test("4: an ID token is not an access token", async () => {
    const { id_token } = await obtainTokens(host, client);
    assert.deepEqual(await introspect(host, client, id_token), { active: false });
  });

  test("a public client can introspect its own tokens only", async () => {
    const spa = await register(host, { token_endpoint_auth_method: "none" });
    const { access_token } = await obtainTokens(host, client);
    const form = { token: access_token, client_id: spa.client_id };
    assert.deepEqual((await post(host, PATH, form)).body, { active: false });
  });

  test("a client can introspect other clients' tokens only with tokens:introspect", async () => {
    const other = await register(host);
    const { access_token, refresh_token } = await obtainTokens(host, client);
    for (const token of [access_token, refresh_token])
      assert.deepEqual(await introspect(host, other, token), { active: false });
    const watcher = await register(host);
    await addRole(host, "resource-server", "tokens:introspect");
    await bindClient(host, watcher.client_id, "resource-server");
    for (const token of [access_token, refresh_token])
      assert.equal((await introspect(host, watcher, token))["active"], true);
  });

  test("a bearer needs the permission to introspect", async () => {
    await addRole(host, "watcher", "tokens:introspect");
    const scope = "tokens:introspect orders.read";
    const watcher = await register(host, { first_party: true, scope });
    await bindClient(host, watcher.client_id, "watcher");
    const stranger = await register(host, { first_party: true, scope });
    await bindClient(host, stranger.client_id);
    const { access_token: asked } = await obtainTokens(host, client);
    const mint = async (as: TestClient): Promise<string> =>
      String(
        (await postToken(host, { grant_type: "client_credentials" }, { as })).body["access_token"],
      );
    const ask = (token: string): ReturnType<typeof post> =>
      post(host, PATH, { token: asked }, { headers: { authorization: `Bearer ${token}` } });
    const allowed = await ask(await mint(watcher));
    assert.equal(allowed.body["active"], true);
    const narrow = await postToken(
      host,
      { grant_type: "client_credentials", scope: "orders.read" },
      { as: watcher },
    );
    const unasked = await ask(String(narrow.body["access_token"]));
    assert.equal(unasked.status, 403, "the token does not carry the scope");
    const denied = await ask(await mint(stranger));
    assert.equal(denied.status, 403);
    assert.equal(denied.body["error"], "insufficient_scope");
    const invalid = await ask("a.b.c");
    assert.equal(invalid.status, 401);
    assert.equal(invalid.body["error"], "invalid_token");
  });

  test("a client with assertions is authenticated by the core, each assertion once", async () => {
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    const signer = await register(host, {
      token_endpoint_auth_method: "private_key_jwt",
      jwks: { keys: [{ ...(await exportJWK(publicKey)), alg: "ES256", kid: "1" }] },
    });
    await addRole(host, "signing-watcher", "tokens:introspect");
    await bindClient(host, signer.client_id, "signing-watcher");
    const { access_token } = await obtainTokens(host, client);
    const sign = (): Promise<string> =>
      new SignJWT({ jti: crypto.randomUUID() })
        .setProtectedHeader({ alg: "ES256", kid: "1" })
        .setIssuer(signer.client_id)
        .setSubject(signer.client_id)
        .setAudience(host.issuer)
        .setIssuedAt()
        .setExpirationTime("1m")
        .sign(privateKey);
    const form = {
      token: access_token,
      client_assertion: await sign(),
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    };
    const answer = await post(host, PATH, form);
    assert.equal(answer.body["active"], true, JSON.stringify(answer.body));
    const replayed = await post(host, PATH, form);
    assert.ok(replayed.status === 401 || replayed.status === 400, JSON.stringify(replayed.body));
    assert.equal(replayed.body["active"], undefined);
    const foreign = { ...form, client_assertion: await sign() };
    const refused = await post(host, "/api/v1/auth/token/revoke", foreign);
    assert.equal(refused.status, 400);
    assert.equal(refused.body["error"], "invalid_request", "another client's token");
  });
});
