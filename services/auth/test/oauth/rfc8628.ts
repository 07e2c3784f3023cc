// RFC 8628, Device Authorization Grant.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "@platform/kernel/time";
import { onEachDatabase } from "../databases.ts";
import { Browser } from "@platform/testing/browser";
import { startHost, USER_ID, type Host } from "./host.ts";
import {
  introspect,
  post,
  postToken,
  refresh,
  register,
  type TestClient,
} from "./relying-party.ts";

const GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code";

onEachDatabase((makeUrl) => {
  let host: Host;
  let aheadMs = 0;
  let client: TestClient;
  before(async () => {
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
    host = await startHost({ url: await makeUrl(), clock });
    client = await register(host, {
      redirect_uris: [],
      response_types: [],
      grant_types: [GRANT_TYPE, "refresh_token"],
      client_name: "Television",
    });
  });
  after(() => host.close());

  const begin = async (): Promise<Record<string, string>> => {
    const form = { scope: "openid offline_access orders.read" };
    const { status, body } = await post(host, "/api/v1/auth/device/authorize", form, {
      as: client,
    });
    assert.equal(status, 200, JSON.stringify(body));
    return body as Record<string, string>;
  };
  const poll = (code: string | undefined): ReturnType<typeof postToken> =>
    postToken(host, { grant_type: GRANT_TYPE, device_code: code ?? "" }, { as: client });

  test("3: the device gets its tokens once, after the user has consented in a browser", async () => {
    const begun = await begin();
    assert.match(begun["user_code"]!, /^[B-Z]{4}-[B-Z]{4}$/);
    assert.ok(begun["verification_uri"]!.startsWith(`${host.issuer}/api/v1/auth/device`));
    assert.equal((await poll(begun["device_code"])).body["error"], "authorization_pending");

    const browser = new Browser();
    const page = await browser.open(begun["verification_uri"]!);
    assert.match(page.text, /Enter the code/);
    const confirm = await browser.submit(page, { user_code: begun["user_code"]! });
    assert.match(confirm.text, /Television/);
    assert.match(confirm.text, new RegExp(begun["user_code"]!));
    const done = await browser.submit(confirm, {});
    assert.match(done.text, /connected/, done.text);

    const { status, body } = await poll(begun["device_code"]);
    assert.equal(status, 200, JSON.stringify(body));
    const described = await introspect(host, client, String(body["access_token"]));
    assert.equal(described.sub, USER_ID);
    assert.equal(described.acr, "1");
    assert.equal((await refresh(host, client, String(body["refresh_token"]))).status, 200);
    assert.equal((await poll(begun["device_code"])).body["error"], "invalid_grant");
  });

  test("the form of the code works without a session: it is shown with one, and no error is logged", async () => {
    const begun = await begin();
    const lines = host.log.length;
    const browser = new Browser();
    const forms = ["", "user_code=BCDF-BCDF", `client_id=${client.client_id}&scope=openid`];
    for (const form of forms) {
      const answer = await post(host, "/api/v1/auth/device", form);
      assert.equal(answer.status, 400);
      assert.match(answer.headers.get("set-cookie") ?? "", /oauth_session=/);
    }
    const shown = await browser.post(begun["verification_uri"]!, {
      user_code: begun["user_code"]!,
    });
    assert.equal(shown.status, 400);
    const confirm = await browser.submit(shown, { user_code: begun["user_code"]! });
    assert.match(confirm.text, /Television/, "the form of the error page works");
    assert.deepEqual(host.log.slice(lines), []);
  });

  test("3.5: a device whose user declines gets access_denied", async () => {
    const begun = await begin();
    const browser = new Browser();
    const page = await browser.open(begun["verification_uri_complete"]!);
    const confirm = page.text.includes("Television")
      ? page
      : await browser.submit(page, { user_code: begun["user_code"]! });
    await browser.submit(confirm, { abort: "yes" });
    assert.equal((await poll(begun["device_code"])).body["error"], "access_denied");
  });

  test("3.5: a device that polls too fast gets slow_down and can continue", async () => {
    const begun = await begin();
    assert.equal(Number(begun["interval"]), 5);
    assert.equal((await poll(begun["device_code"])).body["error"], "authorization_pending");
    const hasty = await poll(begun["device_code"]);
    assert.equal(hasty.status, 400);
    assert.equal(hasty.body["error"], "slow_down");
    const other = await begin();
    assert.equal((await poll(other["device_code"])).body["error"], "authorization_pending");
    aheadMs += 5_000;
    assert.equal((await poll(begun["device_code"])).body["error"], "authorization_pending");
    const browser = new Browser();
    const page = await browser.open(begun["verification_uri"]!);
    const confirm = await browser.submit(page, { user_code: begun["user_code"]! });
    await browser.submit(confirm, {});
    assert.equal((await poll(begun["device_code"])).status, 200, "not a moment later than it can");
  });

  test("3.3: wrong codes and cross-site forms are rejected", async () => {
    const begun = await begin();
    const browser = new Browser();
    const page = await browser.open(begun["verification_uri"]!);
    const wrong = await browser.submit(page, { user_code: "BBBB-BBBB" });
    assert.match(wrong.text, /did not work/);
    const forged = await post(host, "/api/v1/auth/device", {
      user_code: begun["user_code"]!,
      confirm: "yes",
      xsrf: "guess",
    });
    assert.ok(forged.status >= 400);
    assert.equal((await poll(begun["device_code"])).body["error"], "authorization_pending");
  });

  test("3.4: a device code is valid for its client, and unknown ones are rejected", async () => {
    const begun = await begin();
    const other = await register(host, {
      redirect_uris: [],
      response_types: [],
      grant_types: [GRANT_TYPE],
    });
    const form = { grant_type: GRANT_TYPE, device_code: begun["device_code"]! };
    assert.equal((await postToken(host, form, { as: other })).body["error"], "invalid_grant");
    assert.equal((await poll("unknown")).body["error"], "invalid_grant");
  });
});
