// Access of applications' tokens to the service's own API, and clients registered before audiences were separated.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIN, expectStatus, join, signIn, startWithAdmin } from "../client.ts";
import { PageBrowser } from "../pages/page-browser.ts";
import { startApplication } from "../pages/relying-party.ts";
import { STAGE_KINDS, startStage } from "../stage.ts";

const ACCOUNT = "/api/v1/auth/account";

test("an application's token cannot read the account with any audience", async () => {
  const stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
  const ada = await join(stage, "ada");
  const { token: root } = await signIn(stage, ADMIN);
  const role = { name: "reader", permissions: ["orders:read"] };
  await expectStatus(201, stage, "POST", "/api/v1/rbac/roles", { token: root, body: role });
  await expectStatus(200, stage, "POST", `/api/v1/rbac/users/${ada.id}/roles`, {
    token: root,
    body: { roles: ["reader"] },
  });
  const allowance = { platform_audience: "always", acting_roles: ["reader"] };
  for (const [name, metadata, scope, status] of [
    ["Stranger", {}, "openid", 401],
    ["Own", { first_party: true }, "openid", 401],
    ["Signed in", allowance, "openid", 401],
    ["Allowed", { ...allowance, scope: "openid platform:use" }, "openid platform:use", 403],
  ] as const) {
    const application = await startApplication(stage, name, metadata);
    const browser = new PageBrowser(stage);
    const { username, password } = ada;
    await browser.submit(await browser.open("/sign-in"), { username, password }, "/sign-in");
    let page = await browser.open(await application.begin({ scope }));
    if (page.status !== 0) page = await browser.submit(page, { decision: "allow" });
    const { access_token: token } = await application.finish(page.url);
    for (const path of [
      ACCOUNT,
      "/api/v1/sessions",
      "/api/v1/auth/passkeys",
      "/api/v1/auth/mfa/factors",
      "/api/v1/auth/grants",
      `/api/v1/rbac/users/${ada.id}/roles`,
    ]) {
      await expectStatus(status, stage, "GET", path, { token });
    }
    application.close();
  }
  await expectStatus(200, stage, "GET", ACCOUNT, { token: ada.token });
  await stage.close();
});

test("the start logs clients that keep the platform's audience until an administrator decides", async () => {
  const settings = await STAGE_KINDS[0]!.prepare();
  const first = await startWithAdmin(settings);
  const { token } = await signIn(first, ADMIN);
  const made = await expectStatus(201, first, "POST", "/api/v1/auth/clients", {
    token,
    body: { redirect_uris: ["https://old.example/callback"] },
  });
  const { client_id: id } = made.body as unknown as Record<string, string>;
  await first.database.db.updateTable("auth_oauth_clients").set({ keeps_audience: 1 }).execute();
  await first.close();
  const findWarning = (log: readonly string[]): string | undefined =>
    log.find((line) => line.includes("until an administrator sets"));

  const second = await startStage(settings);
  assert.ok(findWarning(second.log)?.includes(id!));
  const root = await signIn(second, ADMIN);
  const path = `/api/v1/auth/clients/${id}`;
  const renamed = await expectStatus(200, second, "PATCH", path, {
    token: root.token,
    body: { client_name: "Old" },
  });
  assert.equal((renamed.body as Record<string, unknown>)["platform_audience"], "always");
  const decided = await expectStatus(200, second, "PATCH", path, {
    token: root.token,
    body: { platform_audience: null },
  });
  assert.equal((decided.body as Record<string, unknown>)["platform_audience"], undefined);
  await second.close();

  const third = await startStage(settings);
  assert.equal(findWarning(third.log), undefined);
  await third.close();
});

test("the start fails if the audience equals that of third-party clients", async () => {
  await assert.rejects(
    startStage({
      ...(await STAGE_KINDS[0]!.prepare()),
      public_url: "https://id.example",
      audience: "https://id.example/",
    }),
    /PLATFORM_AUTH_AUDIENCE/,
  );
});
