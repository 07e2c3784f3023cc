// A route with sign-in at the gateway, in Chromium and with the platform's identity service.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { joinInstallation } from "../browser/console/installation.ts";
import { ADA, BOB, type Platform, startUpstream, type User, ROLE } from "./platform.ts";

const WAIT_MS = 30_000;

let platform: Platform;
let upstream: Awaited<ReturnType<typeof startUpstream>>;
let browser: Browser;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  upstream = await startUpstream((request, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    const shown = JSON.stringify({ url: request.url, fields: request.headers });
    response.end(`<!doctype html><title>reports</title><pre>${shown}</pre>`);
  });
  const { origin } = platform.gate;
  const client = await platform.identity(
    "POST",
    "/api/v1/auth/clients",
    {
      client_name: "Reports",
      redirect_uris: [`${origin}/_platform/oidc/callback`],
      post_logout_redirect_uris: [`${origin}/goodbye`],
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code", "refresh_token"],
      scope: "openid profile offline_access",
      acting_roles: [ROLE],
    },
    platform.admin,
  );
  await platform.addRoute({
    prefix: "/reports",
    target: upstream.url,
    auth: {
      type: "oidc",
      issuer: platform.auth.origin,
      client_id: client["client_id"],
      scopes: ["openid", "profile", "offline_access"],
      claim_headers: { "X-Name": "username" },
    },
  });
  await platform.addRoute({ prefix: "/goodbye", target: upstream.url, auth: { type: "none" } });
});
after(() => upstream?.close());

/** Opens a page of the route and signs in; resolves when the browser is back. */
async function enter(user: User, path = "/reports/2026?page=1#top"): Promise<Page> {
  const context = await browser.newContext({ locale: "en" });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  await page.goto(`${platform.gate.origin}${path}`);
  assert.equal(new URL(page.url()).origin, platform.auth.origin);
  await page.getByLabel("Username").first().fill(user.username);
  await page.getByLabel("Password").first().fill(user.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  const allow = page.getByRole("button", { name: "Allow", exact: true });
  const isBack = page.waitForURL((url) => url.origin === platform.gate.origin);
  await Promise.race([isBack, allow.waitFor().then(() => allow.click())]);
  await isBack;
  return page;
}

interface Shown {
  url: string;
  fields: Record<string, string>;
}

const read = async (page: Page): Promise<Shown> =>
  JSON.parse(await page.locator("pre").innerText()) as Shown;

test(
  "a user signs in, returns to the page, and the upstream sees who it is",
  { skip: chromiumSkip },
  async () => {
    const page = await enter(ADA);
    const { url, fields } = await read(page);
    assert.equal(url, "/reports/2026?page=1");
    assert.ok(fields["x-user-id"]);
    assert.equal(fields["x-name"], "ada");
    assert.equal(fields["x-user-roles"], "writer");
    // Identity is on the same host, so that its cookies are sent, too.
    assert.doesNotMatch(fields["cookie"] ?? "", /gate_/, "the session must not reach the upstream");
    assert.doesNotMatch(String(await page.evaluate("document.cookie")), /gate_/);
    await page.evaluate('document.cookie = "theme=dark; path=/"');
    await page.reload();
    assert.match((await read(page)).fields["cookie"] ?? "", /theme=dark/);
    const status = await page.evaluate(
      'fetch("/reports/data", { method: "POST", body: "x" }).then((answer) => answer.status)',
    );
    assert.equal(status, 200);
    const again = await page.context().newPage();
    await again.goto(`${platform.gate.origin}/reports/other`);
    assert.equal((await read(again)).url, "/reports/other");
    await page.context().close();
  },
);

test(
  "scripts without a session get 401 instead of a sign-in page",
  { skip: chromiumSkip },
  async () => {
    const { status, text } = await platform.ask("/reports/data", {
      headers: { accept: "application/json" },
    });
    assert.equal(status, 401);
    assert.equal((JSON.parse(text) as { code: string }).code, "unauthorized");
  },
);

test("a sign-out at identity ends the session at the gateway", { skip: chromiumSkip }, async () => {
  const page = await enter(BOB);
  const other = await page.context().newPage();
  await other.goto(`${platform.auth.origin}/sign-out`);
  await other.getByRole("button", { name: "Sign out", exact: true }).click();
  const endMs = performance.now() + WAIT_MS;
  do {
    assert.ok(performance.now() < endMs, "the gateway still accepts the session");
    await page.goto(`${platform.gate.origin}/reports/x`);
  } while (new URL(page.url()).origin === platform.gate.origin);
  await page.context().close();
});

test(
  "a sign-out at the gateway ends the session, also at identity",
  { skip: chromiumSkip },
  async () => {
    const page = await enter(ADA);
    await page.goto(`${platform.gate.origin}/_platform/oidc/logout?to=/goodbye`);
    const button = page.getByRole("button", { name: "Sign out", exact: true });
    const isBack = page.waitForURL(`${platform.gate.origin}/goodbye`);
    await Promise.race([isBack, button.waitFor().then(() => button.click())]);
    await isBack;
    await page.goto(`${platform.gate.origin}/reports/x`);
    assert.equal(new URL(page.url()).origin, platform.auth.origin);
    await page.getByLabel("Username").first().waitFor();
    await page.context().close();
  },
);
