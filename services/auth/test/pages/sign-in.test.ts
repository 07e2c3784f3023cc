// Pages for sign-in, sign-up and recovery in a browser without scripts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { generateSync } from "otplib";
import { expectStatus, join, signIn, startWithAdmin, ADMIN } from "../client.ts";
import { STAGE_KINDS, type Stage } from "../stage.ts";
import { PageBrowser, readText, type Page } from "./page-browser.ts";
import { findLink, openPostBox, type PostBox } from "./post-box.ts";

const PASSWORD = "a long enough password";
let stage: Stage;

let post: PostBox;

before(async () => {
  post = await openPostBox();
  const settings = await STAGE_KINDS[0]!.prepare();
  stage = await startWithAdmin({ ...settings, platform_notify_url: post.url });
});
after(async () => {
  await stage.close();
  post.close();
});

async function signUp(browser: PageBrowser, username: string, email?: string): Promise<Page> {
  const page = await browser.open("/sign-up");
  return browser.submit(page, {
    username,
    password: PASSWORD,
    ...(email === undefined ? {} : { email }),
  });
}

async function setUpTotp(browser: PageBrowser): Promise<string> {
  const security = await browser.open("/account/security");
  const setup = await browser.submit(security, {}, "/account/factors/totp");
  const secret = /<code class="secret">([A-Z2-7 ]+)</.exec(setup.text)![1]!.replaceAll(" ", "");
  const codes = await browser.submit(setup, { code: readCode(secret) });
  assert.match(readText(codes), /Your backup codes/);
  return secret;
}

function readCode(secret: string): string {
  return generateSync({ secret, epoch: Math.floor(stage.clock.now() / 1000) });
}

test("a user signs up, signs out and signs in again", async () => {
  const browser = new PageBrowser(stage);
  const account = await signUp(browser, "grace");
  assert.equal(account.url.pathname, "/account");
  assert.match(readText(account), /Signed in as grace/);
  const asked = await browser.open("/sign-out");
  const out = await browser.submit(asked);
  assert.match(readText(out), /You are signed out/);
  assert.equal((await browser.open("/account")).url.pathname, "/sign-in");
  const wrong = await browser.submit(
    await browser.open("/sign-in"),
    { username: "grace", password: "not this one" },
    "/sign-in",
  );
  assert.equal(wrong.status, 422);
  assert.match(readText(wrong), /There is a problem The username or the password is wrong/);
  assert.match(wrong.text, /<title>\s*Error: /);
  assert.match(wrong.text, /value="grace"/);
  const inAgain = await browser.submit(
    wrong,
    { username: "grace", password: PASSWORD },
    "/sign-in",
  );
  assert.equal(inAgain.url.pathname, "/account");
});

test("unknown names, wrong passwords and too many attempts do not reveal which users exist", async () => {
  // Its clock is stopped, so that no attempt is late enough to be admitted again.
  const own = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
  await join(own, "henry");
  own.clock.stop();
  const ask = async (username: string): Promise<string> => {
    const browser = new PageBrowser(own);
    const page = await browser.open("/sign-in");
    const answer = await browser.submit(page, { username, password: "wrong wrong" }, "/sign-in");
    return `${answer.status} ${readText(answer).replaceAll(username, "?")}`;
  };
  assert.equal(await ask("henry"), await ask("nobody-at-all"));
  let last = "";
  for (let attempt = 0; attempt < 11; attempt += 1) last = await ask("nobody-at-all");
  assert.match(last, /^429 .*Too many attempts\. Try again in \d+ seconds/);
  await own.close();
});

test("a failed sign-up explains each field", async () => {
  const browser = new PageBrowser(stage);
  const page = await browser.open("/sign-up");
  const bad = await browser.submit(page, { username: "x y", password: "short", email: "none" });
  assert.equal(bad.status, 422);
  const [first] = /aria-invalid="true"/.exec(bad.text) ?? [];
  assert.ok(first !== undefined, bad.text);
  await join(stage, "taken");
  const taken = await browser.submit(page, { username: "Taken", password: PASSWORD });
  assert.match(readText(taken), /This username is taken/);
  assert.match(taken.text, /<a href="#username">/);
  const empty = await browser.submit(page, { username: "", password: "" });
  assert.match(readText(empty), /Fill in: Username\..*Fill in: Password\./);
});

test("the link's button confirms the address once", async () => {
  const browser = new PageBrowser(stage);
  await signUp(browser, "ida", "ida@example.com");
  const link = findLink(await post.wait("ida@example.com"));
  const page = await browser.open(link);
  assert.match(readText(await browser.open("/account")), /ida@example\.com \(not confirmed yet\)/);
  assert.match(readText(await browser.submit(page)), /Your email address is confirmed/);
  assert.match(readText(await browser.open("/account")), /ida@example\.com \(confirmed\)/);
  const again = await browser.submit(page);
  assert.equal(again.status, 403);
  assert.match(readText(again), /This link does not work/);
});

test("a recovery link works once and does not reveal which users exist", async () => {
  const browser = new PageBrowser(stage);
  await signUp(browser, "karl", "karl@example.com");
  await browser.submit(await browser.open(findLink(await post.wait("karl@example.com"))));
  const stranger = new PageBrowser(stage);
  const ask = async (email: string): Promise<string> =>
    readText(await stranger.submit(await stranger.open("/recover"), { email }));
  assert.equal(await ask("nobody@example.com"), await ask("karl@example.com"));
  const page = await stranger.open(
    findLink(await post.wait("karl@example.com", (text) => text.includes("/recover?"))),
  );
  const weak = await stranger.submit(page, { password: "password" });
  assert.match(readText(weak), /Choose another password/);
  const next = "quite another password";
  const done = await stranger.submit(weak, { password: next });
  assert.match(readText(done), /Your password is set/);
  assert.equal((await browser.open("/account")).url.pathname, "/sign-in", "old sessions end");
  const signedIn = await stranger.submit(done, { username: "karl", password: next }, "/sign-in");
  assert.equal(signedIn.url.pathname, "/account");
  const replay = await stranger.submit(await stranger.open(page.url), { password: PASSWORD });
  assert.match(readText(replay), /This link does not work/);
});

test("users with a second factor need its code; codes and backup codes work once", async () => {
  const browser = new PageBrowser(stage);
  await signUp(browser, "lise");
  const secret = await setUpTotp(browser);
  const stranger = new PageBrowser(stage);
  const enter = async (): Promise<Page> =>
    stranger.submit(
      await stranger.open("/sign-in?continue=/account/sessions"),
      { username: "lise", password: PASSWORD },
      "/sign-in",
    );
  const asked = await enter();
  assert.equal(asked.url.pathname, "/sign-in/factor");
  assert.equal((await stranger.open("/account")).url.pathname, "/sign-in", "half is not enough");
  const wrong = await stranger.submit(asked, { code: "000000" }, "/sign-in/factor");
  assert.match(readText(wrong), /The code is wrong/);
  stage.clock.advance(60_000);
  const code = readCode(secret);
  const inside = await stranger.submit(asked, { code }, "/sign-in/factor");
  assert.equal(inside.url.pathname, "/account/sessions");
  const second = new PageBrowser(stage);
  const askedAgain = await second.submit(
    await second.open("/sign-in"),
    { username: "lise", password: PASSWORD },
    "/sign-in",
  );
  const replayed = await second.submit(askedAgain, { code }, "/sign-in/factor");
  assert.match(readText(replayed), /The code is wrong/);

  const renewed = await browser.submit(
    await browser.open("/account/security"),
    {},
    "/account/factors/backup-codes",
  );
  const backup = /<li>([a-z2-9]{5}-[a-z2-9]{5})</.exec(renewed.text)![1]!;
  const other = new PageBrowser(stage);
  const again = await other.submit(
    await other.open("/sign-in"),
    { username: "lise", password: PASSWORD },
    "/sign-in",
  );
  const way = await other.open(`${again.url.pathname}?way=backup`);
  const byBackup = await other.submit(way, { code: backup.toUpperCase() }, "/sign-in/factor");
  assert.equal(byBackup.url.pathname, "/account");
});

test("users who must have a second factor set one up during the sign-in", async () => {
  const root = await signIn(stage, ADMIN);
  await expectStatus(201, stage, "POST", "/api/v1/rbac/roles", {
    token: root.token,
    body: { name: "guarded", permissions: [] },
  });
  const mona = await join(stage, "mona");
  await expectStatus(200, stage, "POST", `/api/v1/rbac/users/${mona.id}/roles`, {
    token: root.token,
    body: { roles: ["guarded"] },
  });
  await expectStatus(201, stage, "POST", "/api/v1/auth/mfa/policies", {
    token: root.token,
    body: { scope: "role", subject: "guarded", required: true },
  });
  const browser = new PageBrowser(stage);
  const asked = await browser.submit(
    await browser.open("/sign-in"),
    { username: "mona", password: mona.password },
    "/sign-in",
  );
  assert.match(readText(asked), /Protect your account/);
  const setup = await browser.submit(asked);
  assert.match(setup.text, /<img class="qr" src="data:image\/png;base64,[\w+/=]+" alt="QR code/);
  const secret = /<code class="secret">([A-Z2-7 ]+)</.exec(setup.text)![1]!.replaceAll(" ", "");
  const wrong = await browser.submit(setup, { code: "000000" });
  assert.match(readText(wrong), /The code is wrong/);
  const codes = await browser.submit(wrong, { code: readCode(secret) });
  assert.match(readText(codes), /Your backup codes/);
  assert.equal((await browser.open("/account")).url.pathname, "/account");
});
