// Users' grants to applications and their revocation.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { onEachDatabase } from "../databases.ts";
import { startHost, USER_ID, type Host } from "./host.ts";
import { introspect, obtainTokens, refresh, register } from "./relying-party.ts";

onEachDatabase((makeUrl) => {
  let host: Host;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
  });
  after(() => host.close());

  test("a user sees each application once, and revoking ends all of its tokens and no others", async () => {
    const [one, two] = [
      await register(host, { client_name: "One" }),
      await register(host, { client_name: "Two" }),
    ];
    const session = await host.signIn();
    const login = await host.oauth.loginTokens.mint(await host.findAccount(), session);
    const first = await obtainTokens(host, one);
    const second = await obtainTokens(host, one);
    const other = await obtainTokens(host, two);
    const grants = await host.oauth.grants.list(USER_ID);
    assert.deepEqual(
      grants.map(({ client, scopes }) => [client.name, scopes]),
      ["One", "Two"].map((name) => [
        name,
        ["email", "offline_access", "openid", "orders.read", "profile"],
      ]),
    );
    assert.ok(grants.every(({ grantedAt, expiresAt }) => grantedAt > 0 && expiresAt > grantedAt));

    assert.equal(await host.oauth.grants.revoke(USER_ID, one.client_id), true);
    for (const tokens of [first, second]) {
      assert.equal((await introspect(host, one, tokens.access_token)).active, false);
      assert.equal((await refresh(host, one, tokens.refresh_token)).status, 400);
    }
    assert.equal((await introspect(host, two, other.access_token)).active, true);
    assert.equal((await refresh(host, two, other.refresh_token)).status, 200);
    assert.ok(await host.oauth.verifyAccessToken(login.access_token));
    assert.equal(await host.oauth.grants.revoke(USER_ID, one.client_id), false);
    assert.equal((await host.oauth.grants.list(USER_ID)).length, 1);
  });
});
