// Real relying parties through every flow, on both databases.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as client from "openid-client";
import { onEachDatabase } from "../databases.ts";
import { Browser } from "./browser.ts";
import { bindClient, prepare, startHost, userId, type Host } from "./host.ts";

const callback = "http://localhost:9/callback";

onEachDatabase((makeUrl) => {
  let host: Host;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
    await prepare(host);
  });
  after(() => host.close());

  const register = async (more: Record<string, unknown> = {}) => {
    const registered = await host.oauth.addClient({
      redirect_uris: [callback],
      grant_types: ["authorization_code", "refresh_token", "client_credentials"],
      scope: "openid offline_access profile email orders.read orders.write",
      ...more,
    });
    return registered as { client_id: string; client_secret: string };
  };

  const discover = async (id: string, secret?: string): Promise<client.Configuration> =>
    client.discovery(new URL(host.issuer), id, secret, undefined, {
      execute: [client.allowInsecureRequests],
    });

  describe("openid-client", () => {
    test("gets tokens of its own with client credentials", async () => {
      const { client_id, client_secret } = await register();
      await bindClient(host, client_id);
      const config = await discover(client_id, client_secret);
      const tokens = await client.clientCredentialsGrant(config, { scope: "orders.read" });
      assert.equal(tokens.scope, "orders.read");
      assert.equal(tokens.expires_in, 900);
    });

    test("signs a user in with code and PKCE, refreshes, asks userinfo, introspects and revokes", async () => {
      const { client_id, client_secret } = await register();
      const config = await discover(client_id, client_secret);
      const verifier = client.randomPKCECodeVerifier();
      const state = client.randomState();
      const nonce = client.randomNonce();
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: callback,
        scope: "openid offline_access profile email orders.read orders.write",
        prompt: "consent",
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        state,
        nonce,
      });
      const landing = await new Browser().open(url, (at) => at.href.startsWith(callback));
      assert.ok(landing.url.searchParams.has("code"), `${landing.url.href} ${landing.text}`);
      const tokens = await client.authorizationCodeGrant(config, landing.url, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
      });
      assert.equal(tokens.claims()?.sub, userId);
      assert.equal(tokens.claims()?.["email"], "ada@example.com");
      assert.equal(tokens.scope, "openid offline_access profile email orders.read");
      const info = await client.fetchUserInfo(config, tokens.access_token, userId);
      assert.equal(info.name, "Ada Lovelace");
      const active = await client.tokenIntrospection(config, tokens.access_token);
      assert.equal(active.active, true);
      const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token!);
      assert.notEqual(refreshed.refresh_token, tokens.refresh_token);
      await client.tokenRevocation(config, refreshed.refresh_token!);
      assert.equal((await client.tokenIntrospection(config, refreshed.access_token)).active, false);
      await assert.rejects(client.refreshTokenGrant(config, refreshed.refresh_token!), {
        error: "invalid_grant",
      });
    });
  });
});
