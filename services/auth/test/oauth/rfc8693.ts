// RFC 8693: Token Exchange.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { onEachDatabase } from "../databases.ts";
import { addRole, bindClient, startHost, USER_ID, type Host } from "./host.ts";
import {
  introspect,
  obtainTokens,
  post,
  postToken,
  readClaims,
  register,
  type Answer,
  type PostOptions,
  type TestClient,
} from "./relying-party.ts";

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";

onEachDatabase((makeUrl) => {
  let host: Host;
  let app: TestClient;
  let service: TestClient;
  let next: TestClient;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
    app = await register(host);
    await addRole(host, "watcher", "tokens:introspect");
    await bindClient(host, app.client_id, "watcher");
    await addRole(host, "caller", "tokens:exchange");
    const metadata = { grant_types: [EXCHANGE], redirect_uris: [], response_types: [] };
    service = await register(host, { ...metadata, scope: "openid orders.read" });
    next = await register(host, { ...metadata, scope: "orders.read orders.write" });
    await bindClient(host, service.client_id, "caller");
    await bindClient(host, next.client_id, "caller");
  });
  after(() => host.close());

  const swap = (
    token: string,
    as: TestClient | undefined,
    more: Record<string, string> = {},
    options: PostOptions = {},
  ): Promise<Answer> =>
    postToken(
      host,
      { grant_type: EXCHANGE, subject_token: token, subject_token_type: ACCESS_TOKEN, ...more },
      { as, ...options },
    );

  test("2.2.1: the new token belongs to the user, names the actor, and conveys no more than the old one", async () => {
    const { access_token } = await obtainTokens(host, app);
    const { status, body } = await swap(access_token, service);
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(
      [body["issued_token_type"], body["token_type"], body["scope"]],
      [ACCESS_TOKEN, "Bearer", "openid orders.read"],
    );
    assert.equal(body["refresh_token"], undefined);
    const before = readClaims(access_token);
    const after = readClaims(String(body["access_token"]));
    for (const name of ["iss", "aud", "sub", "sid", "auth_time", "acr", "roles", "username"]) {
      assert.deepEqual(after[name], before[name], name);
    }
    assert.equal(after["sub"], USER_ID);
    assert.ok(Number(after["exp"]) <= Number(before["exp"]));
    assert.deepEqual(after["act"], { sub: service.client_id });
    assert.notEqual(after["jti"], before["jti"]);
    const seen = await introspect(host, app, String(body["access_token"]));
    assert.deepEqual([seen["active"], seen["act"]], [true, { sub: service.client_id }]);
  });

  test("an exchanged token expires with its subject token", async () => {
    // A clock behind the core's simulates a slow exchange: the core counts from a later time.
    const late = { now: () => Date.now() - 30_000, monotonicMs: () => performance.now() };
    const node = await startHost({ url: await makeUrl(), clock: late });
    try {
      const client = await register(node);
      await addRole(node, "caller", "tokens:exchange");
      const grant = { grant_types: [EXCHANGE], redirect_uris: [], response_types: [] };
      const caller = await register(node, { ...grant, scope: "openid orders.read" });
      await bindClient(node, caller.client_id, "caller");
      const { access_token } = await obtainTokens(node, client);
      const { exp } = readClaims(access_token);
      late.now = () => Number(exp) * 1_000 - 60_000;
      const { status, body } = await postToken(
        node,
        {
          grant_type: EXCHANGE,
          subject_token: access_token,
          subject_token_type: ACCESS_TOKEN,
        },
        { as: caller },
      );
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(readClaims(String(body["access_token"]))["exp"], exp);
      assert.equal(body["expires_in"], 60);
    } finally {
      await node.close();
    }
  });

  test("4.1: a chain of actors is listed in order and has a maximum length", async () => {
    let { access_token: token } = await obtainTokens(host, app);
    for (const [index, as] of [service, next, service, next].entries()) {
      const { status, body } = await swap(token, as, { scope: "orders.read" });
      assert.equal(status, 200, `${index}: ${JSON.stringify(body)}`);
      token = String(body["access_token"]);
    }
    const innermost = { sub: service.client_id };
    assert.deepEqual(readClaims(token)["act"], {
      sub: next.client_id,
      act: { sub: service.client_id, act: { sub: next.client_id, act: innermost } },
    });
    const tooLong = await swap(token, service);
    assert.deepEqual([tooLong.status, tooLong.body["error"]], [400, "invalid_request"]);
  });

  test("2.1: scopes missing from the old token, the client or the roles are not granted", async () => {
    const { access_token } = await obtainTokens(host, app, { scope: "openid orders.read" });
    const less = await swap(access_token, service, { scope: "orders.read orders.write profile" });
    assert.equal(less.body["scope"], "orders.read");
    // The permission of client and roles is not enough: the user has not granted it to this token.
    const { access_token: narrow } = await obtainTokens(host, app, { scope: "openid" });
    const more = await swap(narrow, service, { scope: "orders.read" });
    assert.deepEqual([more.status, more.body["error"]], [400, "invalid_scope"]);
    assert.equal((await swap(narrow, service)).body["scope"], "openid");
    for (const scope of ["orders.write", "profile", "offline_access"]) {
      const { status, body } = await swap(access_token, service, { scope });
      assert.deepEqual([status, body["error"]], [400, "invalid_scope"], scope);
    }
  });

  test("5: only confidential clients with the permission can exchange tokens", async () => {
    const { access_token } = await obtainTokens(host, app);
    const cases: readonly (readonly [TestClient | undefined, number, string])[] = [
      [undefined, 401, "invalid_client"],
      [{ ...service, client_secret: "wrong" }, 401, "invalid_client"],
      // Without the grant type.
      [app, 400, "unauthorized_client"],
      // With it, but without the permission.
      [
        await register(host, { grant_types: [EXCHANGE], redirect_uris: [], response_types: [] }),
        400,
        "unauthorized_client",
      ],
    ];
    for (const [as, status, error] of cases) {
      const answer = await swap(access_token, as);
      assert.deepEqual([answer.status, answer.body["error"]], [status, error], `${as?.client_id}`);
    }
  });

  test("2.2.2: invalid subject tokens and other targets are rejected", async () => {
    const { access_token, refresh_token, id_token } = await obtainTokens(host, app);
    await bindClient(host, app.client_id);
    const machine = await postToken(host, { grant_type: "client_credentials" }, { as: app });
    for (const token of [
      "x",
      refresh_token,
      id_token,
      `${access_token.slice(0, -4)}AAAA`,
      String(machine.body["access_token"]),
    ]) {
      const { status, body } = await swap(token, service);
      assert.deepEqual([status, body["error"]], [400, "invalid_request"], token.slice(0, 20));
    }
    const cases: readonly (readonly [Record<string, string>, string])[] = [
      [{ subject_token_type: "urn:ietf:params:oauth:token-type:refresh_token" }, "invalid_request"],
      [{ requested_token_type: "urn:ietf:params:oauth:token-type:id_token" }, "invalid_request"],
      [{ actor_token: access_token, actor_token_type: ACCESS_TOKEN }, "invalid_request"],
      [{ audience: "another" }, "invalid_target"],
      [{ resource: "https://another.example/" }, "invalid_target"],
    ];
    for (const [more, error] of cases) {
      const { status, body } = await swap(access_token, service, more);
      assert.deepEqual([status, body["error"]], [400, error], JSON.stringify(more));
    }
    const bound = await swap(access_token, service, {}, { headers: { dpop: "a.b.c" } });
    assert.equal(bound.status, 400);
  });

  test("the new token is revoked with the grant, the session and the user of the old one", async () => {
    const isActive = async (token: string): Promise<unknown> =>
      (await introspect(host, app, token))["active"];
    const obtain = async () => {
      const tokens = await obtainTokens(host, app);
      const { body } = await swap(tokens.access_token, service);
      return { ...tokens, swapped: String(body["access_token"]) };
    };
    const byGrant = await obtain();
    assert.equal(await isActive(byGrant.swapped), true);
    await post(host, "/api/v1/auth/token/revoke", { token: byGrant.refresh_token }, { as: app });
    assert.equal(await isActive(byGrant.swapped), false);
    assert.equal((await swap(byGrant.access_token, service)).body["error"], "invalid_request");

    const bySession = await obtain();
    await host.oauth.revoker.revokeSession(String(readClaims(bySession.access_token)["sid"]));
    assert.equal(await isActive(bySession.swapped), false);

    const byUser = await obtain();
    await host.database.db
      .updateTable("auth_users")
      .set((row) => ({ epoch: row("epoch", "+", 1) }))
      .where("id", "=", USER_ID)
      .execute();
    await host.oauth.revoker.revokeUser(USER_ID, host.database.db);
    assert.equal(await isActive(byUser.swapped), false);
  });
});
