// RFC 9470, Step Up Authentication Challenge, and other reasons for a new sign-in.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { onEachDatabase } from "../databases.ts";
import { Browser } from "@platform/testing/browser";
import { startHost, type Host } from "./host.ts";
import {
  authorize,
  createPkce,
  introspect,
  obtainCode,
  postToken,
  readClaims,
  register,
  type TestClient,
} from "./relying-party.ts";

onEachDatabase((makeUrl) => {
  let host: Host;
  let client: TestClient;
  before(async () => {
    host = await startHost({ url: await makeUrl() });
    client = await register(host);
  });
  after(() => host.close());

  const signIn = async (
    browser: Browser,
    params: Record<string, string>,
  ): Promise<Record<string, unknown>> => {
    const form = await obtainCode(host, client, { prompt: "", ...params }, browser);
    const { body } = await postToken(host, form, { as: client });
    return introspect(host, client, String(body["access_token"]));
  };

  test("4: unmet acr_values require a new sign-in", async () => {
    const browser = new Browser();
    const first = await signIn(browser, {});
    assert.equal(first["acr"], "1");
    const same = await signIn(browser, { acr_values: "1" });
    assert.equal(same["sid"], first["sid"], "reached already: nobody is asked");
    const stepped = await signIn(browser, { acr_values: "2" });
    assert.equal(stepped["acr"], "2");
    assert.notEqual(stepped["sid"], first["sid"]);
    const { challenge } = createPkce();
    const silent = await authorize(
      host,
      client,
      {
        prompt: "none",
        claims: JSON.stringify({ id_token: { acr: { essential: true, values: ["9"] } } }),
        code_challenge: challenge,
        code_challenge_method: "S256",
      },
      browser,
    );
    assert.equal(silent.get("error"), "unmet_authentication_requirements");
    const unknown = await signIn(browser, { acr_values: "9" });
    assert.equal(unknown["sid"], stepped["sid"], "values that are not known are voluntary");
  });

  test("4: max_age requires a new sign-in of a user who signed in too long ago", async () => {
    const browser = new Browser();
    const first = await signIn(browser, {});
    await new Promise((resolve) => setTimeout(resolve, 2_100));
    const still = await signIn(browser, { max_age: "600" });
    assert.equal(still["auth_time"], first["auth_time"]);
    const again = await signIn(browser, { max_age: "1" });
    assert.ok(Number(again["auth_time"]) > Number(first["auth_time"]));
  });

  test("an ended session and another browser require a new sign-in", async () => {
    const browser = new Browser();
    const first = await signIn(browser, {});
    assert.equal((await signIn(browser, {}))["sid"], first["sid"]);
    await host.database.db
      .deleteFrom("auth_sessions")
      .where("id", "=", String(first["sid"]))
      .execute();
    assert.notEqual((await signIn(browser, {}))["sid"], first["sid"]);
    assert.notEqual((await signIn(new Browser(), {}))["sid"], first["sid"]);
  });

  test("tokens of a login contain the authentication, and refreshing keeps it", async () => {
    const session = await host.signIn({
      acr: "2",
      amr: ["pwd", "otp"],
      authTime: 1_700_000_000_000,
    });
    const login = await host.oauth.loginTokens.mint(
      await host.findAccount(),
      session,
      "orders.read openid",
    );
    const form = {
      grant_type: "refresh_token",
      refresh_token: login.refresh_token,
      client_id: "platform",
    };
    const { body } = await postToken(host, form);
    assert.equal(login.scope, "openid orders.read");
    for (const token of [login.access_token, String(body["access_token"])]) {
      const claims = readClaims(token);
      assert.equal(claims["acr"], "2");
      assert.deepEqual(claims["amr"], ["pwd", "otp"]);
      assert.equal(claims["auth_time"], 1_700_000_000);
      assert.equal(claims["sid"], session.id);
      assert.equal(claims["scope"], "openid orders.read");
      assert.ok(await host.oauth.verifyAccessToken(token));
    }
  });
});
