// Requests of applications to the pages: accounts, languages, and errors of invalid requests.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ADMIN, expectStatus, join, signIn, startWithAdmin, type Person } from "../client.ts";
import { STAGE_KINDS, type Stage } from "../stage.ts";
import { PageBrowser, readText, type Page } from "./page-browser.ts";
import { startApplication, type Application } from "./relying-party.ts";

let stage: Stage;
let application: Application;
let ada: Person;
let grace: Person;

before(async () => {
  stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
  application = await startApplication(stage, "Notes", { first_party: true });
  ada = await join(stage, "ada");
  grace = await join(stage, "grace");
});
after(async () => {
  application.close();
  await stage.close();
});

async function enter(person: Person): Promise<PageBrowser> {
  const browser = new PageBrowser(stage);
  await fillIn(browser, await browser.open("/sign-in"), person);
  return browser;
}

function fillIn(browser: PageBrowser, page: Page, { username, password }: Person): Promise<Page> {
  return browser.submit(page, { username, password }, "/sign-in");
}

async function readUser(returned: Page): Promise<unknown> {
  assert.equal(returned.status, 0, readText(returned));
  const tokens = await application.finish(returned.url);
  return tokens.claims()?.["preferred_username"];
}

test("prompt=select_account lets the user choose an account and continues with it", async () => {
  const browser = await enter(ada);
  const chooser = await browser.open(await application.begin({ prompt: "select_account" }));
  assert.match(readText(chooser), /Choose an account for Notes/);
  assert.match(readText(chooser), /Continue as ada/);
  assert.equal(await readUser(await browser.submit(chooser, { decision: "select" })), "ada");

  const again = await browser.open(await application.begin({ prompt: "select_account" }));
  const other = /href="(\/sign-in\?[^"]*)"/.exec(again.text)![1]!.replaceAll("&amp;", "&");
  const returned = await fillIn(browser, await browser.open(other), grace);
  assert.equal(await readUser(returned), "grace");

  const third = await browser.open(await application.begin({ prompt: "select_account" }));
  const denied = await browser.submit(third, { decision: "deny" });
  assert.equal(denied.url.searchParams.get("error"), "access_denied");
});

test("prompt=select_account shows the sign-in page without a session", async () => {
  const browser = new PageBrowser(stage);
  const page = await browser.open(await application.begin({ prompt: "select_account" }));
  assert.match(readText(page), /Sign in to continue to Notes/);
  assert.equal(await readUser(await fillIn(browser, page, ada)), "ada");
});

test("an earlier sign-in does not satisfy a request for a fresh one", async () => {
  const browser = await enter(ada);
  const confirm = await browser.open(await application.begin({ prompt: "login" }));
  assert.equal(confirm.url.pathname, "/confirm", readText(confirm));
});

test("choosing an account does not satisfy max_age or prompt=login", async () => {
  const browser = await enter(ada);
  for (const more of [
    { prompt: "select_account login" },
    { prompt: "select_account", max_age: "0" },
  ]) {
    const chooser = await browser.open(await application.begin(more));
    const confirm = await browser.submit(chooser, { decision: "select" });
    assert.equal(confirm.url.pathname, "/confirm", readText(confirm));
    const { password } = ada;
    assert.equal(await readUser(await browser.submit(confirm, { password }, "/confirm")), "ada");
  }
});

test("a user who signs out or switches accounts while an application waits can continue", async () => {
  const stranger = await startApplication(stage, "Waiting");
  const browser = await enter(ada);
  const known = await browser.open(await stranger.begin());
  await stranger.finish((await browser.submit(known, { decision: "allow" })).url);

  const consent = await browser.open(await stranger.begin({ prompt: "consent" }));
  assert.match(readText(consent), /account ada/);
  const other = await browser.open("/sign-in?as=other");
  await fillIn(browser, other, grace);
  const asked = await browser.open(consent.url);
  assert.match(readText(asked), /account grace/);
  const returned = await browser.submit(asked, { decision: "allow" });
  const tokens = await stranger.finish(returned.url);
  assert.equal(tokens.claims()?.["preferred_username"], "grace");

  const late = await browser.open(await stranger.begin({ prompt: "consent" }));
  await browser.submit(await browser.open("/sign-out"), {}, "/sign-out");
  const signIn = await browser.open(late.url);
  assert.match(readText(signIn), /Sign in to continue to Waiting/);
  const again = await fillIn(browser, signIn, ada);
  assert.match(readText(again), /account ada/);
  stranger.close();
});

test("an application can request another user than the one signed in", async () => {
  const first = await enter(ada);
  const returned = await first.open(await application.begin());
  const { id_token: hint } = await application.finish(returned.url);
  const browser = await enter(grace);
  const silent = await browser.open(
    await application.begin({ prompt: "none", id_token_hint: hint! }),
  );
  assert.equal(silent.url.searchParams.get("error"), "login_required");
  const page = await browser.open(await application.begin({ id_token_hint: hint! }));
  assert.match(readText(page), /Sign in to continue to Notes/);
  assert.equal(await readUser(await fillIn(browser, page, ada)), "ada");
});

test("a page about an account cannot be submitted in another session", async () => {
  const browser = await enter(ada);
  const consent = await browser.open(await application.begin({ prompt: "consent" }));
  const back = await browser.submit(consent, { decision: "select" });
  assert.match(readText(back), /Allow Notes/, "there was no account to choose");
});

test("an essential acr requires the second step once", async () => {
  const ask = (acr: object): Promise<URL> =>
    application.begin({
      claims: JSON.stringify({ id_token: { acr: { essential: true, ...acr } } }),
    });
  const browser = await enter(ada);
  for (const acr of [{ values: ["2"] }, { value: "2" }]) {
    const stronger = await browser.open(await ask(acr));
    assert.equal(stronger.url.pathname, "/confirm");
    assert.match(readText(stronger), /requires a second step/);
  }
  assert.equal(await readUser(await browser.open(await ask({ values: ["1", "2"] }))), "ada");
  const unknown = await browser.open(await ask({ value: "gold" }));
  assert.equal(unknown.url.searchParams.get("error"), "unmet_authentication_requirements");
  const broken = await browser.open(await ask({ values: "2" }));
  assert.equal(broken.url.searchParams.get("error"), "invalid_request");
});

test("pages of an authorization are in the language that the application requests", async () => {
  const browser = new PageBrowser(stage, "en");
  const page = await browser.open(await application.begin({ ui_locales: "fr-CA de-AT en" }));
  assert.match(page.text, /<html lang="de"/);
  const wrong = await fillIn(browser, page, { ...ada, password: "not this one" });
  assert.match(wrong.text, /<html lang="de"/, "the next page, too");
  const unknown = await new PageBrowser(stage, "de").open(
    await application.begin({ ui_locales: "fr" }),
  );
  assert.match(unknown.text, /<html lang="de"/, "none of ours: as the browser prefers");
  const next = await browser.open(await application.begin());
  assert.match(next.text, /<html lang="en"/, "another request has a language of its own");
  const inside = await enter(ada);
  await inside.open(await application.begin());
  const leaving = await inside.open("/api/v1/auth/oauth/logout?ui_locales=de");
  assert.match(leaving.text, /<html lang="de"/);
});

test("an invalid request shows its error instead of an expired sign-in", async () => {
  const browser = new PageBrowser(stage);
  const page = await browser.open("/api/v1/auth/authorize?client_id=nobody&response_type=code");
  assert.equal(page.status, 400);
  assert.match(readText(page), /request cannot be fulfilled/);
  assert.match(readText(page), /invalid_client/);
  const late = await browser.open("/api/v1/auth/authorize/none");
  assert.equal(late.status, 400);
  assert.match(readText(late), /took too long/);
});

test("claims requested by name are shown before consent", async () => {
  const stranger = await startApplication(stage, "Stranger");
  const browser = await enter(grace);
  const claims = JSON.stringify({ userinfo: { email: null, name: null } });
  const page = await browser.open(await stranger.begin({ scope: "openid", claims }));
  assert.match(readText(page), /See your email address/);
  assert.match(readText(page), /See your name/);
  stranger.close();
});

test("prompt=none works after a sign-in on the service's own pages and fails otherwise", async () => {
  const browser = await enter(ada);
  // After the consent in another browser no question is left.
  const before = await enter(ada);
  await readUser(await before.open(await application.begin()));
  const silent = await browser.open(
    await application.begin({ prompt: "none", scope: "openid profile" }),
  );
  assert.equal(silent.url.searchParams.get("error"), null, silent.url.href);
  assert.equal(await readUser(silent), "ada");
  const stranger = new PageBrowser(stage);
  const refused = await stranger.open(await application.begin({ prompt: "none" }));
  assert.equal(refused.url.searchParams.get("error"), "login_required");
});

test("prompt=none with consented claims needs no further consent", async () => {
  const claims = (name: string) => ({
    scope: "openid profile",
    claims: JSON.stringify({ id_token: { [name]: { essential: true } } }),
  });
  const other = await startApplication(stage, "Letters", { scope: "openid profile email" });
  const browser = await enter(ada);
  const asked = await browser.open(await other.begin(claims("email")));
  assert.match(readText(asked), /Allow Letters/);
  const first = await browser.submit(asked, { decision: "allow" });
  assert.equal(first.status, 0, readText(first));
  const again = await enter(ada);
  const silent = await again.open(await other.begin({ ...claims("email"), prompt: "none" }));
  assert.equal(silent.url.searchParams.get("error"), null, silent.url.href);
  assert.equal((await other.finish(silent.url)).claims()?.sub, ada.id);

  const eager = await startApplication(stage, "Eager", { scope: "openid profile email" });
  const agreed = await browser.open(await eager.begin({ scope: "openid profile" }));
  await browser.submit(agreed, { decision: "allow" });
  const refused = await again.open(await eager.begin({ ...claims("email"), prompt: "none" }));
  assert.equal(refused.url.searchParams.get("error"), "consent_required", "never consented to");
  other.close();
  eager.close();
});

test("the consent page says what the application will do on the platform as the user", async () => {
  const { token } = await signIn(stage, ADMIN);
  const role = { name: "app-shop", permissions: ["shop:buy"] };
  await expectStatus(201, stage, "POST", "/api/v1/rbac/roles", { token, body: role });
  for (const [id, roles] of [
    [ada.id, ["app-shop", "admin"]],
    [grace.id, []],
  ] as const)
    await expectStatus(200, stage, "POST", `/api/v1/rbac/users/${id}/roles`, {
      token,
      body: { roles },
    });
  const scope = "openid platform:use gate:admin";
  const shop = await startApplication(stage, "Shop", {
    platform_audience: "always",
    acting_roles: ["app-shop"],
    scope,
  });
  const shown = readText(await (await enter(ada)).open(await shop.begin({ scope })));
  assert.match(shown, /It will be able to: Know who you are/);
  assert.match(
    shown,
    /On this platform it will act as ada, and be able to: Use messaging and storage with your role app-shop Manage the gateway/,
  );
  const without = readText(await (await enter(grace)).open(await shop.begin({ scope })));
  assert.doesNotMatch(without, /On this platform/, "grace has none of these rights");
  shop.close();
});
