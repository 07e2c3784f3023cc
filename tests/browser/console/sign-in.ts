// The platform's console in Chromium: sign-in at identity, the way to each service, sign-out, and pages that attack it.
import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { ADMIN, BOB, type Platform, startUpstream } from "../../identity/platform.ts";
import { chromiumSkip } from "@platform/kernel/testing";
import { PATIENCE_MS, signInAtIdentity } from "./chromium.ts";
import { joinInstallation } from "./installation.ts";

const SERVICES = ["gate", "auth", "vault", "pulse", "notify", "tunnel"];
const JWT = /eyJ[\w-]{10,}\.eyJ/;
const TOKEN = new RegExp(`${JWT.source}|access_token|refresh_token`);

let platform: Platform;
let browser: Browser;
let evil: Awaited<ReturnType<typeof startUpstream>>;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  evil = await startUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<title>application</title>");
  });
  // A program of a user behind the gateway: another port of the same host, and so of the same site.
  await platform.addRoute({ prefix: "/evil", target: evil.url, auth: { type: "none" } });
});

after(async () => {
  evil?.close();
});

async function open(t: TestContext): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext({ locale: "en-GB" });
  t.after(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  return { context, page: await context.newPage() };
}

async function signIn(page: Page, path = "/"): Promise<void> {
  await page.goto(`${platform.console.origin}/ui${path}`);
  await signInAtIdentity(page);
}

/** Status of a request from the page. */
async function ask(page: Page, url: string, init: object = {}): Promise<number | string> {
  return await page.evaluate(
    ([address, options]) =>
      fetch(address, options).then(
        ({ status }) => status,
        (error: unknown) => String(error),
      ),
    [url, init] as const,
  );
}

/** The console's session cookie. */
async function readCookie(context: BrowserContext): Promise<string | undefined> {
  const cookies = await context.cookies(platform.console.origin);
  return cookies.find(({ name }) => name === "platform_console")?.value;
}

test(
  "one sign-in opens all services, no token reaches the browser, and sign-out ends it",
  { skip: chromiumSkip },
  async (t) => {
    const { context, page } = await open(t);
    const seen: string[] = [];
    context.on("request", (request) => {
      seen.push(request.url(), JSON.stringify(request.headers()), request.postData() ?? "");
    });
    context.on("response", (response) => {
      if (!response.url().startsWith(platform.console.origin)) return;
      void response.text().then(
        (text) => seen.push(JSON.stringify(response.headers()), text),
        () => undefined,
      );
    });
    await signIn(page, "/messaging/topics?filter=orders");
    assert.equal(page.url(), `${platform.console.origin}/ui/messaging/topics?filter=orders`);
    for (const id of SERVICES) {
      assert.equal(await ask(page, `/svc/${id}/api/v1/admin/attention`), 200, id);
    }
    await page.getByText("live", { exact: true }).waitFor();
    const stored = String(
      await page.evaluate(
        "JSON.stringify([{ ...localStorage }, { ...sessionStorage }]) + document.cookie",
      ),
    );
    const session = await readCookie(context);
    assert.ok(session !== undefined && session.length >= 43);
    assert.ok(!stored.includes(session), "scripts cannot read the cookie");
    assert.doesNotMatch(stored, TOKEN);
    // The bundle names members such as access_token; values must not appear anywhere.
    for (const text of seen) assert.doesNotMatch(text, JWT);
    const urls = seen.filter((one) => one.startsWith("http")).join("\n");
    assert.doesNotMatch(urls, TOKEN);
    assert.ok(!platform.log.includes(session), "the log has no cookie");
    assert.doesNotMatch(platform.log, JWT);

    // Identity ends its session and leads back, without a page of its own.
    const atIdentity = page.waitForResponse((answer) =>
      answer.url().startsWith(`${platform.auth.origin}/`),
    );
    const back = page.waitForEvent("load");
    await page.getByRole("button", { name: "Sign out" }).click();
    assert.ok((await atIdentity).status() < 400);
    await back;
    const again = page.getByRole("link", { name: "Continue with identity" });
    await again.waitFor();
    assert.equal(await readCookie(context), undefined);
    const [cookie] = [{ name: "platform_console", value: session, url: platform.console.origin }];
    await context.addCookies([cookie]);
    assert.equal(await ask(page, "/console/session"), 401, "the old cookie opens nothing");
    assert.equal(await ask(page, "/svc/gate/api/v1/routes"), 401);
    // Identity's own session has ended as well: it asks for the password again.
    await context.clearCookies({ name: "platform_console" });
    await page.goto(`${platform.console.origin}/ui/`);
    await again.click();
    await page.getByLabel("Password").first().waitFor();
  },
);

test(
  "a session that the server has lost is restored without a page of identity",
  { skip: chromiumSkip },
  async (t) => {
    const { context, page } = await open(t);
    await signIn(page);
    const before = await readCookie(context);
    const lost = { name: "platform_console", value: "A".repeat(43), url: platform.console.origin };
    await context.addCookies([lost]);
    await page.goto(`${platform.console.origin}/ui/storage/users`);
    await page.getByRole("heading", { name: "Users and keys" }).waitFor();
    const restored = await readCookie(context);
    assert.notEqual(restored, before);
    assert.notEqual(
      restored,
      lost.value,
      "a value that somebody has planted never becomes a session",
    );
  },
);

test(
  "a page of the same site can neither post, connect, read nor frame",
  { skip: chromiumSkip },
  async (t) => {
    const { context, page } = await open(t);
    await signIn(page);
    assert.equal(await ask(page, "/svc/gate/api/v1/routes"), 200);
    const foreign = await context.newPage();
    const foreignUrl = `${platform.gate.origin.replace("127.0.0.1", "localhost")}/evil/`;
    await foreign.goto(foreignUrl);
    assert.equal(new URL(foreign.url()).hostname, platform.console.hostname, "of the same site");
    const { origin } = platform.console;
    const credentials = "include";
    const denied = [403, "TypeError: Failed to fetch"];
    for (const [path, init] of [
      ["/svc/gate/api/v1/routes", { method: "GET", credentials }],
      ["/svc/gate/api/v1/reload", { method: "POST", credentials, body: "{}" }],
      ["/svc/vault/api/v1/buckets", { method: "POST", mode: "no-cors", credentials, body: "{}" }],
      ["/console/session", { method: "GET", credentials }],
      ["/console/logout", { method: "POST", mode: "no-cors", credentials }],
    ] as const) {
      const answer = await ask(foreign, origin + path, init);
      assert.ok([...denied, 0].includes(answer), `${path}: ${answer}`);
    }
    for (const path of ["/console/live", "/svc/pulse/ws/subscribe/orders"]) {
      const outcome = await foreign.evaluate(
        (url) =>
          new Promise<string>((resolve) => {
            const socket = new WebSocket(url);
            socket.addEventListener("open", () => resolve("open"));
            socket.addEventListener("error", () => resolve("refused"));
          }),
        `${origin.replace("http", "ws")}${path}`,
      );
      assert.equal(outcome, "refused", path);
    }
    // A form needs no permission of the target: only the server can refuse it.
    const posted = foreign.waitForResponse((response) =>
      response.url().includes("/console/logout"),
    );
    await foreign.evaluate(`{
    const form = document.createElement("form");
    Object.assign(form, { method: "post", action: "${origin}/console/logout" });
    document.body.append(form);
    form.submit();
  }`);
    assert.equal((await posted).status(), 403);
    const framing = await context.newPage();
    await framing.goto(foreignUrl);
    const reported = framing.waitForEvent("console", (message) =>
      message.text().includes("frame-ancestors"),
    );
    await framing.evaluate(`{
    const frame = document.createElement("iframe");
    frame.src = "${origin}/ui/";
    document.body.append(frame);
  }`);
    await reported;
    const inFrame = framing.frames().some((frame) => frame.url().startsWith(`${origin}/ui`));
    assert.equal(inFrame, false, "frame-ancestors 'none'");
    assert.equal(await ask(page, "/svc/gate/api/v1/routes"), 200, "the session is still there");
    const buckets = await platform.storage("GET", "/");
    assert.doesNotMatch(buckets, /evil/);
  },
);

test(
  "a person without a role has no access, which is not an outage",
  { skip: chromiumSkip },
  async (t) => {
    const { page } = await open(t);
    await page.goto(`${platform.console.origin}/ui/`);
    await signInAtIdentity(page, BOB);
    const ledger = page.locator("main table.ledger");
    await ledger.getByText("No access").locator("visible=true").first().waitFor();
    await page
      .getByText(/This account may not see the state of .*Storage/)
      .locator("visible=true")
      .first()
      .waitFor();
    assert.equal(await page.getByText("does not answer").count(), 0);
    assert.equal(await page.locator("nav.rail").getByText("down", { exact: true }).count(), 0);
    await page.goto(`${platform.console.origin}/ui/identity/users`);
    await page.getByText("Not permitted").first().waitFor();
    await page.locator(".trace").getByText("No access").waitFor();
    // Neither an empty list nor an outage.
    for (const path of ["/tunnels", "/runtime/logs", "/mail/dmarc", "/messaging/topics"]) {
      await page.goto(`${platform.console.origin}/ui${path}`);
      await page.getByText("Not permitted").first().waitFor();
      const text = await page.locator("main").innerText();
      assert.doesNotMatch(text, /yet|lost since|Loading|No sources/, path);
      assert.equal(text.match(/Not permitted/g)?.length, 1, path);
    }
  },
);

// The last one: it ends the administrator's sessions.
test(
  "a page whose session is in the gateway's memory ends with the sessions at identity",
  { skip: chromiumSkip },
  async (t) => {
    const { context, page } = await open(t);
    await signIn(page, "/identity/users");
    await page.locator("main tr[data-row]").first().waitFor();
    await page.getByText("live", { exact: true }).waitFor();
    const former = await readCookie(context);
    const { session_token: token, user } = (await platform.signIn(ADMIN)) as unknown as {
      session_token: string;
      user: { id: string };
    };
    const startedMs = performance.now();
    await platform.identity("POST", "/api/v1/sessions/invalidate", { user_id: user.id }, token);
    // Nobody touches the page.
    await page.getByRole("link", { name: "Continue with identity" }).waitFor();
    t.diagnostic(`ended after ${Math.round(performance.now() - startedMs)} ms`);
    assert.equal(await page.locator("main tr[data-row]").count(), 0, "no data is left on it");
    const cookie = `platform_console=${former ?? ""}`;
    const answer = await fetch(`${platform.console.origin}/svc/auth/api/v1/users`, {
      headers: { cookie, "sec-fetch-site": "same-origin" },
    });
    assert.equal(answer.status, 401, "the former cookie opens nothing");
  },
);
