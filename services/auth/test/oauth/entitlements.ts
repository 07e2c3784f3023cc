// Scopes, roles and audience of tokens: an application gets no right of its user that it was not given.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { onEachDatabase } from "../databases.ts";
import { addRole, bindClient, startHost, USER_ID, type Host } from "./host.ts";
import {
  obtainTokens,
  postToken,
  readClaims,
  refresh,
  register,
  type TestClient,
} from "./relying-party.ts";

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const APPLICATION = {
  platform_audience: "always",
  scope: "openid profile orders.read platform:use",
};

/** The claims that services decide by: audience, scopes and roles. */
function readEntitlement(token: unknown): unknown[] {
  const { aud, scope, roles } = readClaims(String(token));
  return [aud, scope, roles];
}

onEachDatabase((makeUrl) => {
  let host: Host;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
    await addRole(host, "app-shop", "shop:buy");
    await bindUser("app-shop");
    await bindUser("admin");
  });
  after(() => host.close());

  const bindUser = (role: string) =>
    host.database.db
      .insertInto("auth_role_bindings")
      .values({ role, subject_kind: "user", subject_id: USER_ID })
      .execute();
  const signIn = async (client: TestClient, scope: string, more: Record<string, string> = {}) =>
    obtainTokens(host, client, { scope, ...more });
  const obtain = async (client: TestClient, scope: string, more?: Record<string, string>) =>
    readEntitlement((await signIn(client, scope, more)).access_token);

  test("a sign-in gives an application neither a role of the user nor a token for services", async () => {
    for (const metadata of [{}, { platform_audience: "always" }, { first_party: true }]) {
      const client = await register(host, metadata);
      for (const scope of ["openid", "openid profile email"])
        assert.deepEqual(await obtain(client, scope), [host.issuer, scope, []], scope);
    }
    const named = await register(host, APPLICATION);
    const resource = { resource: "urn:platform" };
    assert.deepEqual(await obtain(named, "openid", resource), [host.issuer, "openid", []]);
  });

  test("an application with the platform's audience has the scopes that the user has consented to, and no role", async () => {
    const client = await register(host, APPLICATION);
    assert.deepEqual(await obtain(client, "openid orders.read"), [
      "platform",
      "openid orders.read",
      [],
    ]);
    assert.deepEqual(
      await obtain(client, "openid platform:use"),
      [host.issuer, "openid", []],
      "without acting roles there is nothing to use",
    );
    assert.deepEqual(await obtain(await register(host), "openid orders.read"), [
      host.issuer,
      "openid orders.read",
      [],
    ]);
  });

  test("acting roles are those of the user that an administrator has allowed the client", async () => {
    const client = await register(host, {
      ...APPLICATION,
      scope: `${APPLICATION.scope} offline_access`,
      acting_roles: ["app-shop"],
    });
    const scope = "openid offline_access platform:use";
    const tokens = await signIn(client, scope);
    assert.deepEqual(readEntitlement(tokens.access_token), ["platform", scope, ["app-shop"]]);

    await host.oauth.clients.change(client.client_id, { acting_roles: null }, undefined);
    const { body } = await refresh(host, client, tokens.refresh_token);
    assert.deepEqual(readEntitlement(body["access_token"]), [
      host.issuer,
      "openid offline_access",
      [],
    ]);
  });

  test("an administrator's roles and scopes reach an application only if it was allowed and asks", async () => {
    const metadata = { ...APPLICATION, scope: "openid gate:admin *:*" };
    const client = await register(host, metadata);
    assert.deepEqual(await obtain(client, "openid gate:admin"), [
      "platform",
      "openid gate:admin",
      [],
    ]);
    assert.deepEqual(await obtain(client, "openid *:*"), ["platform", "openid *:*", []]);
    await assert.rejects(obtain(await register(host, APPLICATION), "openid gate:admin"));
  });

  test("a client's own token has its own roles", async () => {
    const client = await register(host, { ...APPLICATION, acting_roles: ["admin"] });
    await bindClient(host, client.client_id, "app-shop");
    const { body } = await postToken(host, { grant_type: "client_credentials" }, { as: client });
    assert.deepEqual(readEntitlement(body["access_token"]), ["platform", undefined, ["app-shop"]]);
  });

  test("an exchanged token has no role that the subject token lacks", async () => {
    await addRole(host, "exchanger", "tokens:exchange");
    const service = await register(host, {
      ...APPLICATION,
      grant_types: [EXCHANGE],
      acting_roles: ["app-shop", "admin"],
    });
    await bindClient(host, service.client_id, "exchanger");
    const client = await register(host, { ...APPLICATION, acting_roles: ["app-shop"] });
    const swap = async (scope: string) => {
      const { access_token: subject } = await signIn(client, scope);
      const { body } = await postToken(
        host,
        {
          grant_type: EXCHANGE,
          subject_token: subject,
          subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
        },
        { as: service },
      );
      return readEntitlement(body["access_token"]);
    };
    const both = "openid orders.read platform:use";
    assert.deepEqual(await swap(both), ["platform", both, ["app-shop"]]);
    assert.deepEqual(await swap("openid"), [host.issuer, "openid", ["app-shop"]]);
  });

  test("acting roles must exist", async () => {
    await assert.rejects(register(host, { acting_roles: ["nobody"] }), /no role nobody/);
    await assert.rejects(register(host, { acting_roles: "admin" }), /acting_roles/);
  });
});
