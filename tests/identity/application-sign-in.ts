// One sign-in in Chromium: a page behind the gateway signs its user in, publishes, subscribes, stores and reads.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { joinInstallation } from "../browser/console/installation.ts";
import {
  ADA,
  BOB,
  BUCKET,
  type Platform,
  ROLE,
  SCOPES,
  startUpstream,
  type User,
} from "./platform.ts";

const WAIT_MS = 30_000;
const SIGN_OUT_MS = 2_000;

let platform: Platform;
let upstream: Awaited<ReturnType<typeof startUpstream>>;
let browser: Browser;
let clientId: string;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  const page = readFileSync(new URL("application.html", import.meta.url));
  upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page);
  });
  await platform.addRoute({ prefix: "/app", target: upstream.url, auth: { type: "none" } });
  const { origin } = platform.gate;
  const client = await platform.identity(
    "POST",
    "/api/v1/auth/clients",
    {
      client_name: "Notes",
      redirect_uris: [`${origin}/app/`],
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code"],
      scope: `openid ${SCOPES}`,
      first_party: true,
      acting_roles: [ROLE],
    },
    platform.admin,
  );
  clientId = String(client["client_id"]);
  // Consent of first-party clients is not asked for scopes that are marked as first-party; these are not.
  const rule = `<CORSConfiguration><CORSRule><AllowedOrigin>${origin}</AllowedOrigin><AllowedMethod>PUT</AllowedMethod><AllowedMethod>GET</AllowedMethod><AllowedHeader>*</AllowedHeader></CORSRule></CORSConfiguration>`;
  await platform.storage("PUT", `/${BUCKET}?cors`, rule);
});
after(() => upstream?.close());

/** Opens the application and signs the user in; resolves when the page has tried everything. */
async function enter(user: User): Promise<Page> {
  const context = await browser.newContext({ locale: "en" });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const settings = {
    issuer: platform.auth.origin,
    clientId,
    scope: `openid ${SCOPES}`,
    vault: `http://${platform.hostOf("vault")}/`,
    bucket: BUCKET,
    role: ROLE,
  };
  const hash = new URLSearchParams({ settings: JSON.stringify(settings) });
  await page.goto(`${platform.gate.origin}/app/#${hash.toString()}`);
  await page.getByRole("button", { name: "Sign in to Notes" }).click();
  await page.getByLabel("Username").first().fill(user.username);
  await page.getByLabel("Password").first().fill(user.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  const allow = page.getByRole("button", { name: "Allow", exact: true });
  const isBack = page.waitForURL(`${platform.gate.origin}/app/`);
  await Promise.race([isBack, allow.waitFor().then(() => allow.click())]);
  await isBack;
  await seen(page, /^ready$/m);
  return page;
}

async function seen(page: Page, pattern: RegExp, timeout = WAIT_MS): Promise<void> {
  const log = page.locator("#log");
  const endMs = performance.now() + timeout;
  for (;;) {
    const text = await log.innerText();
    if (pattern.test(text)) return;
    assert.ok(performance.now() < endMs, `${String(pattern)} is not in:\n${text}`);
    await page.waitForTimeout(20);
  }
}

test(
  "a user with the role publishes, subscribes, stores and reads; sign-out ends it all",
  { skip: chromiumSkip },
  async () => {
    const page = await enter(ADA);
    for (const line of [
      /^token 200$/m,
      /^keys 200$/m,
      /^published 200$/m,
      /^received hello$/m,
      /^stored 200$/m,
      /^read 200 a note$/m,
    ]) {
      await seen(page, line);
    }
    const other = await page.context().newPage();
    await other.goto(`${platform.auth.origin}/sign-out`);
    const button = other.getByRole("button", { name: "Sign out", exact: true });
    await button.waitFor();
    const startedMs = performance.now();
    await button.click();
    await seen(page, /^dropped the token was revoked$/m);
    const droppedMs = performance.now() - startedMs;
    assert.ok(droppedMs <= SIGN_OUT_MS, `the stream ended after ${droppedMs} ms`);
    await page.waitForTimeout(Math.max(0, SIGN_OUT_MS - droppedMs));
    // The code of the page, once more.
    await page.evaluate("window.check()");
    await seen(page, /^published 401$/m);
    await seen(page, /^stored 400$/m);
    await seen(page, /^read 400 ExpiredToken$/m);
    await seen(page, /^events closed$/m);
    await page.context().close();
  },
);

test(
  "a user without the role signs in, and is refused everywhere else",
  { skip: chromiumSkip },
  async () => {
    const page = await enter(BOB);
    await seen(page, /^token 200$/m);
    // Without a scope of the platform, the token is for userinfo only.
    await seen(page, /^published 401$/m);
    await seen(page, /^keys 400 InvalidIdentityToken$/m);
    await seen(page, /^events closed$/m);
    assert.doesNotMatch(await page.locator("#log").innerText(), /received|stored|read /);
    await page.context().close();
  },
);
