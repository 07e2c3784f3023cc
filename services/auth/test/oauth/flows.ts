// Real relying parties through every flow, on both databases.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as client from "openid-client";
import { onEachDatabase } from "../databases.ts";
import { Browser } from "@platform/testing/browser";
import { addRole, bindClient, startHost, USER_ID, type Host } from "./host.ts";
import { chooseScope } from "./relying-party.ts";

const CALLBACK = "http://localhost:9/callback";
const GOODBYE = "http://localhost:9/goodbye";

onEachDatabase((makeUrl) => {
  let host: Host;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
  });
  after(() => host.close());

  const register = async (more: Record<string, unknown> = {}) => {
    const registered = await host.oauth.clients.add(
      {
        redirect_uris: [CALLBACK],
        grant_types: ["authorization_code", "refresh_token", "client_credentials"],
        scope: chooseScope(more["grant_types"]),
        ...more,
      },
      undefined,
    );
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
        redirect_uri: CALLBACK,
        scope: "openid offline_access profile email orders.read orders.write",
        prompt: "consent",
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        state,
        nonce,
      });
      const landing = await new Browser().open(url, (at) => at.href.startsWith(CALLBACK));
      assert.ok(landing.url.searchParams.has("code"), `${landing.url.href} ${landing.text}`);
      const tokens = await client.authorizationCodeGrant(config, landing.url, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
      });
      assert.equal(tokens.claims()?.sub, USER_ID);
      assert.equal(tokens.claims()?.["email"], "ada@example.com");
      assert.equal(tokens.scope, "openid offline_access profile email orders.read");
      const info = await client.fetchUserInfo(config, tokens.access_token, USER_ID);
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

    test("pushes its request, binds its tokens to a key, and signs the user out", async () => {
      const { client_id, client_secret } = await register({
        require_pushed_authorization_requests: true,
        dpop_bound_access_tokens: true,
        post_logout_redirect_uris: [GOODBYE],
      });
      const config = await discover(client_id, client_secret);
      const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair());
      const verifier = client.randomPKCECodeVerifier();
      const url = await client.buildAuthorizationUrlWithPAR(
        config,
        {
          redirect_uri: CALLBACK,
          scope: "openid offline_access orders.read",
          prompt: "consent",
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: "S256",
        },
        { DPoP },
      );
      assert.match(
        url.searchParams.get("request_uri") ?? "",
        /^urn:ietf:params:oauth:request_uri:/,
      );
      const browser = new Browser();
      const landing = await browser.open(url, (at) => at.href.startsWith(CALLBACK));
      const tokens = await client.authorizationCodeGrant(
        config,
        landing.url,
        { pkceCodeVerifier: verifier },
        undefined,
        { DPoP },
      );
      assert.equal(tokens.token_type, "dpop");
      const info = await client.fetchUserInfo(config, tokens.access_token, USER_ID, { DPoP });
      assert.equal(info.sub, USER_ID);
      const next = await client.refreshTokenGrant(config, tokens.refresh_token!, undefined, {
        DPoP,
      });
      await assert.rejects(
        client.refreshTokenGrant(config, next.refresh_token!),
        client.ResponseBodyError,
        "not without a proof",
      );
      const left = await browser.open(
        client.buildEndSessionUrl(config, {
          id_token_hint: tokens.id_token!,
          post_logout_redirect_uri: GOODBYE,
        }),
        (at) => at.href.startsWith(GOODBYE),
      );
      assert.equal(left.url.href, GOODBYE);
      assert.equal((await client.tokenIntrospection(config, next.access_token)).active, false);
    });

    test("signs a user in on a device", async () => {
      const { client_id, client_secret } = await register({
        grant_types: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
        redirect_uris: [],
        response_types: [],
      });
      const config = await discover(client_id, client_secret);
      const begun = await client.initiateDeviceAuthorization(config, {
        scope: "openid offline_access",
      });
      const polled = client.pollDeviceAuthorizationGrant(config, { ...begun, interval: 0.1 });
      const browser = new Browser();
      const filledIn = await browser.open(begun.verification_uri_complete!);
      const compared = await browser.submit(filledIn, {});
      await browser.submit(compared, {});
      const tokens = await polled;
      assert.equal(tokens.claims()?.sub, USER_ID);
      assert.ok(tokens.refresh_token);
    });

    test("registers itself, and exchanges its user's token where that is permitted", async () => {
      const config = await client.dynamicClientRegistration(
        new URL(host.issuer),
        { redirect_uris: [CALLBACK], client_name: "Self", scope: "openid orders.read" },
        undefined,
        {
          execute: [client.allowInsecureRequests],
          initialAccessToken: await host.oauth.clients.createInitialAccessToken(60, undefined),
        },
      );
      assert.equal(config.clientMetadata().client_name, "Self");
      const verifier = client.randomPKCECodeVerifier();
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: CALLBACK,
        scope: "openid orders.read",
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      const landing = await new Browser().open(url, (at) => at.href.startsWith(CALLBACK));
      const tokens = await client.authorizationCodeGrant(config, landing.url, {
        pkceCodeVerifier: verifier,
      });
      const exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
      const service = await register({
        grant_types: [exchange],
        redirect_uris: [],
        response_types: [],
      });
      const parameters = {
        subject_token: tokens.access_token,
        subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
      };
      const asService = await discover(service.client_id, service.client_secret);
      const swap = () => client.genericGrantRequest(asService, exchange, parameters);
      await assert.rejects(swap(), { error: "unauthorized_client" });
      await addRole(host, "caller", "tokens:exchange");
      const allowed = await register({
        grant_types: [exchange],
        redirect_uris: [],
        response_types: [],
      });
      await bindClient(host, allowed.client_id, "caller");
      const asAllowed = await discover(allowed.client_id, allowed.client_secret);
      const swapped = await client.genericGrantRequest(asAllowed, exchange, parameters);
      assert.equal(swapped.scope, "openid orders.read");
    });
  });
});
