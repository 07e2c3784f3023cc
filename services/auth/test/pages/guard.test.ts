// Input that pages reject: foreign, oversized and malformed forms, replays, other users' objects, bad redirect
// targets.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { createPageRoutes } from "../../src/pages/create-pages.ts";
import { html } from "../../src/pages/html.ts";
import { chooseLanguage } from "../../src/pages/language/language.ts";
import type { PageServices } from "../../src/pages/page-services.ts";
import { readContinue, withQuery } from "../../src/pages/route.ts";
import { ADMIN, expectStatus, join, signIn, startWithAdmin, type Person } from "../client.ts";
import { STAGE_KINDS, type Stage } from "../stage.ts";
import { PageBrowser, readText, type Page } from "./page-browser.ts";
import { startApplication } from "./relying-party.ts";

// Only paths and methods are read; handlers are not called.
const routes = createPageRoutes({} as PageServices);
const posts = routes.filter(({ method }) => method === "POST").map(({ path }) => fillIn(path));
let stage: Stage;

before(async () => {
  stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
});
after(() => stage.close());

function fillIn(path: string): string {
  return path.replace("{id}", "none");
}

async function enter(person: Person): Promise<PageBrowser> {
  const browser = new PageBrowser(stage);
  const page = await browser.open("/sign-in");
  const { username, password } = person;
  const inside = await browser.submit(page, { username, password }, "/sign-in");
  assert.equal(inside.url.pathname, "/account", readText(inside));
  return browser;
}

function readCsrf(page: Page): string {
  return /name="csrf" value="([^"]+)"/.exec(page.text)![1]!;
}

test("pages cannot be framed, cached or made to load foreign resources", async () => {
  const browser = await enter(await join(stage, "frame"));
  const pages = routes.filter(({ method }) => method === "GET").map(({ path }) => fillIn(path));
  for (const path of [...pages, "/api/v1/auth/device"]) {
    const { headers, url } = await browser.open(path);
    const policy = headers.get("content-security-policy") ?? "";
    assert.match(policy, /^default-src 'none'/, url.pathname);
    assert.match(policy, /frame-ancestors 'none'/, url.pathname);
    assert.match(policy, /base-uri 'none'/, url.pathname);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/, url.pathname);
    assert.match(headers.get("cache-control") ?? "", /no-store/, url.pathname);
    assert.equal(headers.get("x-content-type-options"), "nosniff", url.pathname);
    assert.match(headers.get("referrer-policy") ?? "", /^(?:same-origin|no-referrer)$/);
    const opener = url.pathname.startsWith("/account") ? "same-origin" : null;
    assert.equal(headers.get("cross-origin-opener-policy"), opener, url.pathname);
  }
});

test("forms require the token of the browser's session and the same origin", async () => {
  const person = await join(stage, "forms");
  const browser = await enter(person);
  const csrf = readCsrf(await browser.open("/account"));
  const other = await enter(person);
  const foreignCsrf = readCsrf(await other.open("/account"));
  const attempts: [Record<string, string>, Record<string, string>][] = [
    [{}, {}],
    [{ csrf: "" }, {}],
    [{ csrf: foreignCsrf }, {}],
    [{ csrf: `${csrf}x` }, {}],
    [{ csrf }, { Origin: "https://evil.example" }],
    [{ csrf }, { Origin: "null" }],
    [{ csrf }, { "Sec-Fetch-Site": "cross-site" }],
    [{ csrf }, { "Sec-Fetch-Site": "same-site" }],
  ];
  for (const path of posts) {
    for (const [fields, headers] of attempts) {
      const { status, text } = await browser.post(path, fields, headers);
      assert.equal(status, 403, `${path} ${JSON.stringify([fields, headers])}`);
      assert.match(text, /This page has expired/);
    }
  }
  assert.equal((await browser.open("/account")).url.pathname, "/account", "still signed in");
});

test("a form from before the sign-in is rejected after it", async () => {
  const person = await join(stage, "fixed");
  const browser = new PageBrowser(stage);
  const before = await browser.open("/sign-in");
  const { username, password } = person;
  await browser.submit(before, { username, password }, "/sign-in");
  const late = await browser.post("/account/profile", { csrf: readCsrf(before), name: "Mallory" });
  assert.equal(late.status, 403);
});

test("users who are not signed in are sent to sign in and back", async () => {
  const browser = new PageBrowser(stage);
  for (const route of routes) {
    if (route.access === "public" || route.method !== "GET" || route.path === "/confirm") continue;
    const page = await browser.open(route.path);
    assert.equal(page.url.pathname, "/sign-in", route.path);
    if (route.path.startsWith("/account")) {
      assert.equal(page.url.searchParams.get("continue"), route.path);
    }
  }
  const csrf = readCsrf(await browser.open("/sign-in"));
  for (const route of routes) {
    if (route.access === "public" || route.method !== "POST") continue;
    const page = await browser.post(route.path, { csrf });
    assert.equal(page.url.pathname, "/sign-in", route.path);
  }
});

test("changing credentials requires a sign-in within the last ten minutes", async () => {
  const own = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
  const browser = new PageBrowser(own);
  const { username, password } = await join(own, "stale");
  await browser.submit(await browser.open("/sign-in"), { username, password }, "/sign-in");
  own.clock.advance(11 * 60_000);
  const csrf = readCsrf(await browser.open("/account/security"));
  for (const route of routes.filter(({ access }) => access === "fresh")) {
    const page = await browser.post(route.path, { csrf, back: "/account/security" });
    assert.equal(page.url.pathname, "/confirm", route.path);
  }
  const asked = await browser.open("/confirm?continue=/account/security");
  const before = browser.readCookie("platform_session");
  const wrong = await browser.submit(asked, { password: "not this" });
  assert.match(readText(wrong), /The password is wrong/);
  const confirmed = await browser.submit(asked, { password });
  assert.equal(confirmed.url.pathname, "/account/security");
  const after = browser.readCookie("platform_session")!;
  assert.notEqual(after, before, "a session that may do more has another token");
  browser.setCookie("platform_session", before);
  assert.equal((await browser.open("/account")).url.pathname, "/sign-in");
  browser.setCookie("platform_session", after);
  const changed = await browser.submit(
    await browser.open("/account/security"),
    { current_password: password, new_password: "something else entirely" },
    "/account/password",
  );
  assert.match(readText(changed), /Your password has been changed/);
  await own.close();
});

test("links cannot redirect to other sites after a sign-in", async () => {
  const { username, password } = await join(stage, "wanderer");
  for (const target of [
    "https://evil.example/",
    "//evil.example",
    "/\\evil.example",
    "/account/../../evil",
    "/account//evil.example",
    "/account?next=//evil",
    "javascript:alert(1)",
    "/interaction/x/y",
    "/api/v1/auth/oauth/logout",
  ]) {
    const browser = new PageBrowser(stage);
    const page = await browser.open(withQuery("/sign-in", { continue: target }));
    const inside = await browser.submit(page, { username, password }, "/sign-in");
    assert.equal(inside.url.href, `${stage.publicUrl}/account`, target);
  }
  fc.assert(
    fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), (url) => {
      assert.equal(readContinue(url), undefined);
      assert.equal(readContinue(url.slice(url.indexOf("//"))), undefined);
    }),
  );
});

test("user input is rendered as text", async () => {
  const hostile = `"><script>alert(1)</script><img src=x onerror='alert(1)'>`;
  const escaped = "&quot;&gt;&lt;script&gt;";
  const browser = new PageBrowser(stage);
  const page = await browser.open("/sign-in");
  const wrong = await browser.submit(page, { username: hostile, password: "x" }, "/sign-in");
  assert.ok(wrong.text.includes(escaped) && !wrong.text.includes("<img src=x"), wrong.text);
  const device = await browser.open(withQuery("/api/v1/auth/device", { user_code: hostile }));
  assert.ok(device.text.includes(escaped) && !device.text.includes("<script>alert"), device.text);
  const application = await startApplication(stage, hostile);
  const asked = await browser.open(await application.begin({ login_hint: hostile }));
  assert.ok(asked.text.includes(escaped) && !asked.text.includes("<img src=x"), asked.text);
  application.close();
  fc.assert(
    fc.property(fc.string(), (text) => {
      const inside = html`<p title="${text}">${text}</p>`.text;
      assert.doesNotMatch(inside.slice('<p title="'.length, -"</p>".length), /<(?!\/?p)|"(?!>)/);
      assert.equal(html`${html`${text}`}`.text, html`${text}`.text, "escaped once");
    }),
  );
});

test("oversized forms, other content types, repeated fields and null characters are rejected", async () => {
  const browser = await enter(await join(stage, "large"));
  const csrf = readCsrf(await browser.open("/account"));
  const large = await browser.post("/account/profile", { csrf, name: "x".repeat(60_000) });
  assert.equal(large.status, 413);
  assert.match(readText(large), /too large/);
  const twice = new URLSearchParams({ csrf, name: "a" });
  twice.append("name", "b");
  assert.equal((await browser.post("/account/profile", twice)).status, 422);
  const nul = await browser.post("/account/profile", { csrf, name: "a\0b" });
  assert.equal(nul.status, 422);
  const json = await browser.post("/account/profile", { csrf }, { "Content-Type": "text/plain" });
  assert.equal(json.status, 422);
  const fine = await browser.post("/account/profile", { csrf, name: "Ada <b>" });
  assert.match(fine.text, /value="Ada &lt;b&gt;"/);
});

test("other methods are 405 with Allow, and HEAD has no body", async () => {
  const ask = (
    method: string,
    path: string,
  ): Promise<{ status: number; allow: string; body: string }> =>
    new Promise((resolve, reject) => {
      const url = new URL(path, stage.url);
      request(url, { method }, (response) => {
        let body = "";
        response.on("data", (chunk: Buffer) => (body += chunk.toString()));
        response.on("end", () => {
          const { allow = "" } = response.headers;
          resolve({ status: response.statusCode ?? 0, allow, body });
        });
      })
        .on("error", reject)
        .end();
    });
  const put = await ask("PUT", "/sign-in");
  assert.deepEqual([put.status, put.allow], [405, "GET, POST"]);
  const head = await ask("HEAD", "/sign-in");
  assert.deepEqual([head.status, head.body], [200, ""]);
  assert.equal((await ask("GET", "/sign-in/nowhere")).status, 404);
});

test("objects of other users cannot be ended, renamed, removed or confirmed", async () => {
  const victim = await join(stage, "victim");
  const browser = await enter(await join(stage, "attacker"));
  const csrf = readCsrf(await browser.open("/account"));
  const { body } = await expectStatus(200, stage, "GET", "/api/v1/sessions", {
    token: victim.token,
  });
  const [session] = (body as never as { sessions: { id: string }[] }).sessions;
  await browser.post("/account/sessions/end", { csrf, id: session!.id });
  await expectStatus(200, stage, "GET", "/api/v1/auth/account", { token: victim.session });
  const setup = await expectStatus(200, stage, "POST", "/api/v1/auth/mfa/setup", {
    token: victim.token,
    body: { type: "totp" },
  });
  const id = String(setup.body["id"]);
  const removed = await browser.post("/account/factors/remove", { csrf, id });
  assert.equal(removed.status, 404);
  const confirmed = await browser.post("/account/factors/confirm", {
    csrf,
    factor_id: id,
    code: "123456",
  });
  assert.equal(confirmed.status, 404);
  for (const action of ["rename", "remove"]) {
    const page = await browser.post(`/account/passkeys/${action}`, { csrf, id, name: "mine" });
    assert.equal(page.status, 404, action);
  }
  for (const credential of ["", "{}", "null", "[1", `{"id":"${"a".repeat(2000)}"}`]) {
    const added = await browser.post("/account/passkeys", { csrf, credential });
    assert.equal(added.status, 422, credential);
  }
});

test("a consent is valid once, for the browser and the content that were shown", async () => {
  const application = await startApplication(stage, "Notes");
  const person = await join(stage, "agreeing");
  const browser = await enter(person);
  const asked = await browser.open(await application.begin({ scope: "openid profile" }));
  assert.match(readText(asked), /Allow Notes\?.*See your name, username and picture/);

  const stranger = await enter(await join(stage, "stranger"));
  const csrf = readCsrf(await stranger.open("/account"));
  const foreign = await stranger.post(asked.url.pathname, {
    csrf,
    decision: "allow",
    shown: `${person.id} openid profile`,
  });
  assert.equal(foreign.status, 400);
  assert.match(readText(foreign), /Start again at the application/);

  const more = await browser.submit(asked, { decision: "allow", shown: `${person.id} openid` });
  assert.match(readText(more), /Allow Notes\?/, "what was not shown is asked again");
  const silent = await browser.submit(asked, { decision: "" });
  assert.match(readText(silent), /Allow Notes\?/);
  const done = await browser.submit(asked, { decision: "allow" });
  assert.notEqual(done.url.origin, stage.publicUrl);
  const tokens = await application.finish(done.url);
  assert.equal(tokens.claims()?.sub, person.id);
  const replay = await browser.submit(asked, { decision: "allow" });
  assert.equal(replay.status, 400);
  application.close();
});

test("a self-registered client cannot become first-party", async () => {
  const root = await signIn(stage, ADMIN);
  const path = "/api/v1/auth/clients/initial-access-tokens";
  const { body } = await expectStatus(201, stage, "POST", path, { token: root.token, body: {} });
  const client = { redirect_uris: ["https://app.example/callback"], first_party: true };
  await expectStatus(400, stage, "POST", "/api/v1/auth/oauth/register", {
    token: String(body["token"]),
    body: client,
  });
  await expectStatus(201, stage, "POST", "/api/v1/auth/clients", {
    token: root.token,
    body: client,
  });
  await expectStatus(400, stage, "POST", "/api/v1/auth/clients", {
    token: root.token,
    body: { ...client, first_party: "yes" },
  });
});

test("a policy for a client applies to users who are already signed in", async () => {
  const application = await startApplication(stage, "Vault");
  const root = await signIn(stage, ADMIN);
  const browser = await enter(await join(stage, "early"));
  const before = await browser.open(await application.begin({ scope: "openid" }));
  await application.finish((await browser.submit(before, { decision: "allow" })).url);
  await expectStatus(201, stage, "POST", "/api/v1/auth/mfa/policies", {
    token: root.token,
    body: { scope: "client", subject: application.clientId, required: true },
  });
  const after = await browser.open(await application.begin({ scope: "openid" }));
  assert.equal(after.url.pathname, "/confirm");
  assert.match(readText(after), /requires a second step/);
  application.close();
});

test("a device is connected after its code is confirmed, and a logout at an application ends the session", async () => {
  const application = await startApplication(stage, "Television", {
    grant_types: ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
    token_endpoint_auth_method: "none",
  });
  const browser = await enter(await join(stage, "viewer"));
  const answer = await fetch(`${stage.url}/api/v1/auth/device/authorize`, {
    method: "POST",
    body: new URLSearchParams({ client_id: application.clientId, scope: "openid" }),
  });
  const device = (await answer.json()) as Record<string, string>;
  const short = await browser.open(`/device?user_code=${device["user_code"]}`);
  assert.ok(short.text.includes(`value="${device["user_code"]}"`), "the code is filled in");
  const compared = await browser.submit(short);
  assert.match(readText(compared), /Television shows this code:/);
  const consent = await browser.submit(compared);
  assert.match(readText(consent), /Allow Television\?/);
  const connected = await browser.submit(consent, { decision: "allow" });
  assert.match(readText(connected), /Television is connected/);

  const asked = await browser.open("/api/v1/auth/oauth/logout");
  assert.match(readText(asked), /Do you want to sign out\?/);
  const out = await browser.submit(asked, { logout: "yes" });
  assert.match(readText(out), /You are signed out/);
  assert.equal((await browser.open("/account")).url.pathname, "/sign-in");
  application.close();
});

test("pages are in the language that the browser prefers", async () => {
  for (const [header, tag] of [
    ["de-AT,de;q=0.9,en;q=0.8", "de"],
    ["fr,en;q=0.5,de;q=0.4", "en"],
    ["en;q=0.1, de;q=0.9", "de"],
    ["de;q=0, *", "en"],
    ["", "en"],
    [`${"x,".repeat(5000)}de`, "en"],
    [";;;=,,,q=de", "en"],
  ] as const) {
    assert.equal(chooseLanguage(header).tag, tag, header.slice(0, 40));
  }
  const page = await new PageBrowser(stage, "de").open("/sign-in");
  assert.match(page.text, /<html lang="de">/);
  assert.match(readText(page), /Mit Passkey anmelden/);
});

test("passwords are masked and can be pasted and autofilled, and every account page has a sign-out link", async () => {
  const browser = await enter(await join(stage, "manager"));
  const pages = ["/account", "/account/security", "/account/sessions", "/account/applications"];
  for (const path of pages) {
    assert.match((await browser.open(path)).text, /<a href="\/sign-out">Sign out<\/a>/, path);
  }
  const stranger = new PageBrowser(stage);
  const forms = [
    await stranger.open("/sign-in"),
    await stranger.open("/sign-up"),
    await stranger.open("/recover?token=none"),
    await browser.open("/account/security"),
    await browser.open("/confirm"),
  ];
  for (const { text, url } of forms) {
    const inputs = [...text.matchAll(/<input[^>]*name="\w*password"[^>]*>/g)].map(
      ([input]) => input,
    );
    assert.ok(inputs.length > 0, url.pathname);
    for (const input of inputs) {
      assert.match(input, /type="password"/);
      assert.match(input, /autocomplete="(?:current|new)-password"/);
      assert.doesNotMatch(input, /\son\w+=/, "no script keeps anybody from pasting");
    }
  }
});
