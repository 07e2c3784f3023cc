// RFC 9126, Pushed Authorization Requests.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { onEachDatabase } from "../databases.ts";
import { Browser } from "@platform/testing/browser";
import { startHost, type Host } from "./host.ts";
import {
  CALLBACK,
  createPkce,
  post,
  postToken,
  register,
  type Answer,
  type TestClient,
} from "./relying-party.ts";

onEachDatabase((makeUrl) => {
  let host: Host;
  let client: TestClient;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
    client = await register(host, { require_pushed_authorization_requests: true });
  });
  after(() => host.close());

  const push = (form: Record<string, string>, as?: TestClient): Promise<Answer> =>
    post(
      host,
      "/api/v1/auth/par",
      { client_id: client.client_id, response_type: "code", redirect_uri: CALLBACK, ...form },
      as === undefined ? {} : { as },
    );
  const open = (requestUri: string, browser = new Browser()): ReturnType<Browser["open"]> => {
    const url = new URL("/api/v1/auth/authorize", host.issuer);
    url.search = new URLSearchParams({
      client_id: client.client_id,
      request_uri: requestUri,
    }).toString();
    return browser.open(url, (at) => at.href.startsWith(CALLBACK));
  };

  test("2: a pushed request is used through its URI, once", async () => {
    const { verifier, challenge } = createPkce();
    const pushed = await push(
      { scope: "openid orders.read", code_challenge: challenge, code_challenge_method: "S256" },
      client,
    );
    assert.equal(pushed.status, 201, JSON.stringify(pushed.body));
    const uri = String(pushed.body["request_uri"]);
    assert.match(uri, /^urn:ietf:params:oauth:request_uri:/);
    const landing = await open(uri);
    const code = landing.url.searchParams.get("code");
    assert.ok(code, landing.text);
    const form = {
      grant_type: "authorization_code",
      code,
      redirect_uri: CALLBACK,
      code_verifier: verifier,
    };
    assert.equal((await postToken(host, form, { as: client })).status, 200);
    const again = await open(uri);
    assert.equal(again.url.searchParams.get("code"), null);
    assert.match(again.text + again.url.search, /invalid|expired|used/);
  });

  test("2.1: the client is authenticated and the request checked when it is pushed", async () => {
    const { challenge } = createPkce();
    const pkce = { code_challenge: challenge, code_challenge_method: "S256" };
    const bare = await push({ scope: "openid", ...pkce });
    assert.equal(bare.status, 401);
    assert.equal(bare.body["error"], "invalid_client");
    const foreign = await push(
      { scope: "openid", ...pkce, redirect_uri: "http://evil.example/" },
      client,
    );
    assert.equal(foreign.status, 400);
    const withoutPkce = await push({ scope: "openid" }, client);
    assert.equal(withoutPkce.body["error"], "invalid_request");
  });

  test("4: a client that must push requests cannot omit that or use an unknown URI", async () => {
    const { challenge } = createPkce();
    const url = new URL("/api/v1/auth/authorize", host.issuer);
    url.search = new URLSearchParams({
      client_id: client.client_id,
      response_type: "code",
      redirect_uri: CALLBACK,
      scope: "openid",
      code_challenge: challenge,
      code_challenge_method: "S256",
    }).toString();
    const plain = await new Browser().open(url, (at) => at.href.startsWith(CALLBACK));
    assert.equal(plain.url.searchParams.get("error"), "invalid_request");
    const invented = await open("urn:ietf:params:oauth:request_uri:invented");
    assert.equal(invented.url.searchParams.get("code"), null);
  });
});
