// oauth4webapi as a relying party: code with PKCE, PAR and DPoP, client credentials, device flow, refresh, revocation.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as oauth from "oauth4webapi";
import { onEachDatabase } from "../databases.ts";
import { Browser } from "@platform/testing/browser";
import { startHost, USER_ID, type Host } from "./host.ts";
import { ALL_SCOPES, CALLBACK, register } from "./relying-party.ts";

const INSECURE = { [oauth.allowInsecureRequests]: true };

onEachDatabase((makeUrl) => {
  let host: Host;
  let server: oauth.AuthorizationServer;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
    const issuer = new URL(host.issuer);
    const found = await oauth.discoveryRequest(issuer, INSECURE);
    server = await oauth.processDiscoveryResponse(issuer, found);
  });
  after(() => host.close());

  const walk = async (url: URL): Promise<URL> =>
    (await new Browser().open(url, (at) => at.href.startsWith(CALLBACK))).url;

  test("both discovery documents name the issuer and every endpoint", async () => {
    const issuer = new URL(host.issuer);
    const found = await oauth.discoveryRequest(issuer, { ...INSECURE, algorithm: "oauth2" });
    const other = await oauth.processDiscoveryResponse(issuer, found);
    assert.deepEqual(other, server);
    for (const endpoint of [
      server.authorization_endpoint,
      server.token_endpoint,
      server.jwks_uri,
      server.userinfo_endpoint,
      server.introspection_endpoint,
      server.revocation_endpoint,
      server.registration_endpoint,
      server.end_session_endpoint,
      server.device_authorization_endpoint,
      server.pushed_authorization_request_endpoint,
    ]) {
      assert.ok(endpoint?.startsWith(`${host.issuer}/`), String(endpoint));
    }
    assert.deepEqual(server.code_challenge_methods_supported, ["S256"]);
    assert.deepEqual(server.response_types_supported, ["code"]);
  });

  test("a confidential client: pushed request, code, ID token, userinfo, refresh, introspection, revocation", async () => {
    const { client_id, client_secret } = await register(host);
    const client: oauth.Client = { client_id };
    const auth = oauth.ClientSecretBasic(client_secret);
    const verifier = oauth.generateRandomCodeVerifier();
    const nonce = oauth.generateRandomNonce();
    const state = oauth.generateRandomState();
    const pushed = await oauth.processPushedAuthorizationResponse(
      server,
      client,
      await oauth.pushedAuthorizationRequest(
        server,
        client,
        auth,
        new URLSearchParams({
          client_id,
          response_type: "code",
          redirect_uri: CALLBACK,
          scope: ALL_SCOPES,
          prompt: "consent",
          code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
          code_challenge_method: "S256",
          nonce,
          state,
        }),
        INSECURE,
      ),
    );
    const url = new URL(server.authorization_endpoint!);
    url.search = new URLSearchParams({ client_id, request_uri: pushed.request_uri }).toString();
    const params = oauth.validateAuthResponse(server, client, await walk(url), state);
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      auth,
      params,
      CALLBACK,
      verifier,
      INSECURE,
    );
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, {
      expectedNonce: nonce,
      requireIdToken: true,
    });
    await oauth.validateApplicationLevelSignature(server, response, INSECURE);
    assert.equal(oauth.getValidatedIdTokenClaims(tokens)?.sub, USER_ID);
    const info = await oauth.processUserInfoResponse(
      server,
      client,
      USER_ID,
      await oauth.userInfoRequest(server, client, tokens.access_token, INSECURE),
    );
    assert.equal(info.preferred_username, "Ada");
    const refreshed = await oauth.processRefreshTokenResponse(
      server,
      client,
      await oauth.refreshTokenGrantRequest(server, client, auth, tokens.refresh_token!, INSECURE),
    );
    const active = async (token: string): Promise<boolean> => {
      const asked = await oauth.introspectionRequest(server, client, auth, token, INSECURE);
      return (await oauth.processIntrospectionResponse(server, client, asked)).active;
    };
    assert.equal(await active(refreshed.access_token), true);
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(server, client, auth, refreshed.access_token, INSECURE),
    );
    assert.equal(await active(refreshed.access_token), false);
  });

  test("a public client with DPoP: code, userinfo and refresh with one key", async () => {
    const { client_id } = await register(host, {
      token_endpoint_auth_method: "none",
      dpop_bound_access_tokens: true,
    });
    const client: oauth.Client = { client_id };
    const DPoP = oauth.DPoP(client, await oauth.generateKeyPair("ES256"));
    const verifier = oauth.generateRandomCodeVerifier();
    const url = new URL(server.authorization_endpoint!);
    url.search = new URLSearchParams({
      client_id,
      response_type: "code",
      redirect_uri: CALLBACK,
      scope: ALL_SCOPES,
      prompt: "consent",
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    }).toString();
    const params = oauth.validateAuthResponse(server, client, await walk(url), oauth.expectNoState);
    const tokens = await oauth.processAuthorizationCodeResponse(
      server,
      client,
      await oauth.authorizationCodeGrantRequest(
        server,
        client,
        oauth.None(),
        params,
        CALLBACK,
        verifier,
        { ...INSECURE, DPoP },
      ),
    );
    assert.equal(tokens.token_type, "dpop");
    const info = await oauth.processUserInfoResponse(
      server,
      client,
      USER_ID,
      await oauth.userInfoRequest(server, client, tokens.access_token, { ...INSECURE, DPoP }),
    );
    assert.equal(info.email, "ada@example.com");
    const refreshed = await oauth.processRefreshTokenResponse(
      server,
      client,
      await oauth.refreshTokenGrantRequest(server, client, oauth.None(), tokens.refresh_token!, {
        ...INSECURE,
        DPoP,
      }),
    );
    assert.notEqual(refreshed.access_token, tokens.access_token);
  });

  test("a client registers itself, works, and gets an RFC 9068 access token", async () => {
    const initial = await host.oauth.clients.createInitialAccessToken(60, undefined);
    const registered = await oauth.processDynamicClientRegistrationResponse(
      await oauth.dynamicClientRegistrationRequest(
        server,
        {
          redirect_uris: [],
          response_types: [],
          grant_types: ["client_credentials"],
          scope: "orders.read",
        },
        { ...INSECURE, initialAccessToken: initial },
      ),
    );
    const client: oauth.Client = { client_id: registered.client_id };
    const auth = oauth.ClientSecretBasic(registered.client_secret as string);
    const { access_token } = await oauth.processClientCredentialsResponse(
      server,
      client,
      await oauth.clientCredentialsGrantRequest(server, client, auth, {}, INSECURE),
    );
    const request = new Request("http://api.example/", {
      headers: { authorization: `Bearer ${access_token}` },
    });
    const claims = await oauth.validateJwtAccessToken(server, request, host.issuer, INSECURE);
    assert.equal(claims.client_id, registered.client_id);
    assert.equal(claims.sub, registered.client_id);
  });

  test("a device signs in", async () => {
    const grantType = "urn:ietf:params:oauth:grant-type:device_code";
    const { client_id, client_secret } = await register(host, {
      redirect_uris: [],
      response_types: [],
      grant_types: [grantType, "refresh_token"],
    });
    const client: oauth.Client = { client_id };
    const auth = oauth.ClientSecretBasic(client_secret);
    const begun = await oauth.processDeviceAuthorizationResponse(
      server,
      client,
      await oauth.deviceAuthorizationRequest(server, client, auth, { scope: "openid" }, INSECURE),
    );
    const browser = new Browser();
    const page = await browser.open(begun.verification_uri);
    await browser.submit(await browser.submit(page, { user_code: begun.user_code }), {});
    const tokens = await oauth.processDeviceCodeResponse(
      server,
      client,
      await oauth.deviceCodeGrantRequest(server, client, auth, begun.device_code, INSECURE),
    );
    assert.equal(oauth.getValidatedIdTokenClaims(tokens)?.sub, USER_ID);
  });
});
