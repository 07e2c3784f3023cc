// The inspector: its checks of requests, and its page in Chromium.
import assert from "node:assert/strict";
import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import type { Browser, Page } from "playwright-core";
import { findViolations } from "@platform/testing/accessibility";
import { waitFor } from "@platform/testing/wait";
import { startInspector, type Inspector } from "../../src/inspect/inspector.ts";
import { Cleanup, send, startLocal, startTestClient, startTestRelay } from "../fixture/stage.ts";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const cleanup = new Cleanup();
const seen: { method: string; url: string; body: string; token: string | undefined }[] = [];
let relayPort = 0;
let inspector: Inspector;

before(async () => {
  const localPort = await startLocal(cleanup, (request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const body = Buffer.concat(pieces).toString();
      seen.push({ method, url, body, token: headers.authorization });
      if (url.startsWith("/evil")) {
        response.setHeader("content-type", "text/html");
        response.end("<script>window.evil = true</script><img src=x onerror='window.evil = true'>");
      } else if (url.startsWith("/image")) {
        response.setHeader("content-type", "image/png");
        response.end(Buffer.from(PNG, "base64"));
      } else if (url.startsWith("/broken")) {
        response.writeHead(500, { "content-type": "application/json" }).end('{"error":"no id"}');
      } else {
        response.setHeader("content-type", "application/json");
        response.end('{"id":12345678901234567890,"nested":{"list":[1,"two",null]}}');
      }
    });
  });
  const relay = await startTestRelay(cleanup, { auth_token: "operator-token" });
  relayPort = relay.port;
  const client = await startTestClient(cleanup, {
    port: relayPort,
    token: "operator-token",
    tunnels: [{ target: String(localPort), subdomain: "demo" }],
  });
  inspector = await startInspector({
    port: 0,
    relay: `ws://127.0.0.1:${relayPort}/ws/connect`,
    token: "operator-token",
    ca: undefined,
    targets: [String(localPort)],
  });
  cleanup.add(() => inspector.close());
  inspector.onWelcome(client.welcomes[0]!);
  const report = setInterval(() => {
    const requests = client.requests.splice(0);
    if (requests.length > 0) inspector.onRequests({ requests, dropped: 0 });
  }, 20);
  cleanup.add(() => clearInterval(report));
});
after(() => cleanup.run());

function visit(path: string, options: Partial<Parameters<typeof send>[0]> = {}) {
  return send({ port: relayPort, host: `demo.localhost:${relayPort}`, path, ...options });
}

/** Sends a request to the inspector with exactly these fields. */
function ask(
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
  body?: string,
): Promise<{ status: number; headers: Record<string, unknown>; text: string }> {
  const { port } = new URL(inspector.url);
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      {
        host: "127.0.0.1",
        port,
        path,
        method,
        headers: { host: `127.0.0.1:${port}`, ...headers },
        agent: false,
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (piece: string) => {
          text += piece;
        });
        response.on("end", () => {
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        });
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

async function findTunnelId(): Promise<string> {
  const { json } = await readApi("");
  const { tunnels } = json as { tunnels: { id: string; subdomain: string }[] };
  return tunnels.find(({ subdomain }) => subdomain === "demo")!.id;
}

async function readApi(path: string): Promise<{ json: unknown }> {
  const answer = await send({
    port: relayPort,
    host: `localhost:${relayPort}`,
    path: `/api/v1/tunnels${path}`,
    headers: { authorization: "Bearer operator-token" },
  });
  return { json: JSON.parse(answer.body.toString()) };
}

describe("requests of others", () => {
  test("with another Host are refused: DNS rebinding", async () => {
    const { port } = new URL(inspector.url);
    for (const host of [
      "evil.example",
      `evil.example:${port}`,
      `127.0.0.1.evil.example:${port}`,
      "127.0.0.1",
      "localhost",
      `localhost.:${port}`,
      `demo.localhost:${port}`,
      `127.0.0.2:${port}`,
    ]) {
      for (const path of [
        "/",
        "/app.js",
        "/api/events",
        `/api/tunnels/${await findTunnelId()}/requests`,
      ]) {
        const { status, text } = await ask(path, { host });
        assert.ok(status === 403 || status === 400, `${host} ${path}: ${status}`);
        assert.doesNotMatch(text, /<html|demo/);
      }
    }
  });

  test("by pages of other origins and by proxies are refused", async () => {
    const { port } = new URL(inspector.url);
    const path = `/api/tunnels/${await findTunnelId()}/requests`;
    const count = seen.length;
    for (const headers of [
      { origin: "http://evil.example" },
      { origin: `http://demo.localhost:${relayPort}` },
      { origin: `https://127.0.0.1:${port}1` },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { "x-forwarded-for": "203.0.113.9" },
      { forwarded: "for=203.0.113.9" },
    ] as Record<string, string>[]) {
      assert.equal((await ask(path, headers)).status, 403, JSON.stringify(headers));
    }
    assert.equal(seen.length, count);
    assert.equal((await ask(path, { origin: `http://127.0.0.1:${port}` })).status, 200);
    const navigation = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    assert.equal((await ask("/", navigation)).status, 200);
  });

  test("that a form could send do not replay", async () => {
    await visit("/one");
    const id = await findTunnelId();
    const { json } = await readApi(`/${id}/requests`);
    const [first] = (json as { requests: { id: string }[] }).requests;
    const count = seen.length;
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      const headers = { "content-type": type };
      const { status } = await ask(`/api/tunnels/${id}/replay/${first!.id}`, headers, "POST", "{}");
      assert.equal(status, 415);
    }
    assert.equal(seen.length, count);
  });

  test("reach no other tunnel and no other operation of the relay", async () => {
    const id = await findTunnelId();
    const other = await startTestClient(cleanup, {
      port: relayPort,
      token: "operator-token",
      key: "key-of-another-client-000",
      tunnels: [{ target: "9", subdomain: "other" }],
    });
    const [grant] = other.welcomes[0]!.tunnels;
    assert.ok(grant !== undefined && "id" in grant);
    for (const path of [
      `/api/tunnels/${grant.id}/requests`,
      `/api/tunnels/${id}`,
      `/api/tunnels/${id}/../../subjects/cut-off`,
      `/api/tunnels/${id}/requests/../../../subjects/cut-off`,
      `/api/tunnels/${id}%2F..%2Fother/requests`,
      "/etc/passwd",
      "/../inspector.ts",
      "/inspector.ts",
    ]) {
      assert.equal((await ask(path)).status, 404, path);
    }
    assert.equal((await ask(`/api/tunnels/${id}/requests`, {}, "PUT")).status, 405);
    const large = "x".repeat(3_000_000);
    const type = { "content-type": "application/json" };
    const answer = await ask(`/api/tunnels/${id}/share`, type, "POST", large);
    assert.equal(answer.status, 413);
  });
});

test("the page's policy allows nothing but its own files", async () => {
  const { headers, text } = await ask("/");
  const policy = String(headers["content-security-policy"]);
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /script-src 'self'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|https?:|data:/);
  assert.doesNotMatch(text, /https?:\/\/|<script>|style=/);
  assert.equal(headers["x-content-type-options"], "nosniff");
});

test("the page has the tokens and fonts of all pages, from its own server", async () => {
  const { text } = await ask("/style.css");
  assert.match(text, /--paper: #/);
  const fonts = [...text.matchAll(/url\("([^"]*)"\)/g)].map(([, url]) => String(url));
  assert.ok(fonts.length > 0);
  for (const url of fonts) {
    assert.match(url, /^\/fonts\/[\w-]+\.woff2$/);
    const font = await ask(url);
    assert.equal(font.status, 200, url);
    assert.equal(font.headers["content-type"], "font/woff2");
    assert.ok(font.text.startsWith("wOF2"));
  }
  const { headers } = await ask("/");
  assert.match(String(headers["content-security-policy"]), /font-src 'self';/);
});

test("open pages are bounded, and room is made when one closes", async () => {
  const { port } = new URL(inspector.url);
  const host = `127.0.0.1:${port}`;
  const open = (): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port, path: "/api/events", headers: { host } };
      httpRequest({ ...options, agent: false }, resolve)
        .on("error", reject)
        .end();
    });
  const pages: IncomingMessage[] = [];
  for (let index = 0; index < 32; index++) pages.push(await open());
  assert.ok(pages.every(({ statusCode }) => statusCode === 200));
  const refused = await open();
  assert.equal(refused.statusCode, 503);
  refused.destroy();
  for (const page of pages) page.destroy();
  await waitFor(async () => {
    const page = await open();
    page.destroy();
    return page.statusCode === 200;
  });
});

test("if the port is in use, the next free one is taken", async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => {
    taken.listen(0, "127.0.0.1", resolve);
  });
  cleanup.add(() => taken.close());
  const { port } = taken.address() as AddressInfo;
  const relay = "ws://127.0.0.1:1/ws/connect";
  const options = { port, relay, token: undefined, ca: undefined, targets: [] };
  const second = await startInspector(options);
  const chosen = Number(new URL(second.url).port);
  assert.ok(chosen > port && chosen <= port + 20);
  await second.close();
});

describe("in Chromium", { skip: chromiumSkip }, () => {
  let browser: Browser;
  let page: Page;
  const faults: string[] = [];

  before(async () => {
    browser = await startChromium();
    cleanup.add(() => browser.close());
    const context = await browser.newContext({
      permissions: ["clipboard-read", "clipboard-write"],
      viewport: { width: 1440, height: 900 },
    });
    context.setDefaultTimeout(20_000);
    page = await context.newPage();
    page.on("console", (message) => {
      if (message.type() === "error") faults.push(message.text());
    });
    page.on("pageerror", (error) => faults.push(String(error)));
    await page.goto(inspector.url);
    await page.getByText("live", { exact: true }).waitFor();
  });

  const row = (path: string) => page.getByRole("row").filter({ hasText: path }).first();
  const response = () => page.getByRole("region", { name: "Response" });

  test("a request appears while the page is open, and is shown with its response", async () => {
    await visit("/orders?token=secret-value", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer hidden-value" },
      body: '{"amount":4990}',
    });
    await row("/orders").click();
    await response().getByText('"nested"').waitFor();
    const text = await page.locator("#detail").innerText();
    assert.match(text, /"amount": 4990/);
    // Numbers keep their digits.
    assert.match(text, /"id": 12345678901234567890,/);
    assert.match(text, /"list": \[\s+1,\s+"two",\s+null\s+\]/);
    assert.doesNotMatch(await page.content(), /secret-value|hidden-value/);
    const [left, right] = await Promise.all(
      ["Request", "Response"].map((name) =>
        page.getByRole("region", { name, exact: true }).boundingBox(),
      ),
    );
    assert.ok(left !== null && right !== null && left !== undefined && right !== undefined);
    assert.ok(right.x >= left.x + left.width && right.y === left.y, "side by side");
  });

  for (const scheme of ["light", "dark"] as const) {
    test(`the page has no accessibility faults, and its own fonts: ${scheme}`, async () => {
      await page.emulateMedia({ colorScheme: scheme });
      await row("/orders").click();
      await response().getByText('"nested"').waitFor();
      await page.evaluate("document.fonts.ready.then(() => undefined)");
      const violations = await findViolations(page);
      assert.deepEqual(violations, []);
      const loaded = await page.evaluate(
        "[...document.fonts].filter(({ status }) => status === 'loaded').length",
      );
      assert.ok(Number(loaded) >= 2);
      await page.emulateMedia({ colorScheme: null });
    });
  }

  test("fonts are cached, and nothing else", async () => {
    const style = await (await fetch(`${inspector.url}/style.css`)).text();
    const [, font = ""] = /url\("(\/fonts\/[\w-]+-[0-9a-f]{16}\.woff2)"\)/.exec(style) ?? [];
    const read = async (path: string): Promise<string | null> =>
      (await fetch(`${inspector.url}${path}`)).headers.get("cache-control");
    assert.equal(await read(font), "public, max-age=31536000, immutable");
    for (const path of ["/", "/app.js", "/style.css"]) assert.equal(await read(path), "no-store");
  });

  test("captured HTML is text, and never runs", async () => {
    await visit("/evil?q=<img src=x onerror=window.evil=true>".replaceAll(" ", "%20"));
    await row("/evil").click();
    await response().getByText("<script>window.evil = true</script>").waitFor();
    assert.equal(await page.evaluate("window.evil"), undefined);
    assert.equal(await page.locator("#detail script, #detail img, iframe").count(), 0);
  });

  test("forms, images and failures are shown for what they are", async () => {
    await visit("/image", {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: "name=Ada+Lovelace&password=hunter2",
    });
    await row("/image").click();
    const image = response().getByRole("img");
    await image.waitFor();
    const width =
      "document.querySelector('#detail img').decode().then(() => document.querySelector('#detail img').naturalWidth)";
    assert.equal(await page.evaluate(width), 1);
    const form = await page.getByRole("region", { name: "Request", exact: true }).innerText();
    assert.match(form, /name\s+Ada Lovelace/);
    assert.match(form, /password\s+\[redacted\]/);
    await visit("/broken");
    await row("/broken").getByText("500").waitFor();
  });

  test("the strip counts requests and failures of the last five minutes", async () => {
    const readStrip = async (): Promise<number[]> => {
      const label = await page
        .getByRole("img", { name: /^Last 5 minutes/ })
        .getAttribute("aria-label");
      return [...(label ?? "").matchAll(/\d+/g)].slice(1).map(Number);
    };
    const [requests = 0, failures = 0] = await readStrip();
    await visit("/broken");
    await visit("/image");
    await waitFor(async () => {
      const [more = 0, failed = 0] = await readStrip();
      return more >= requests + 2 && failed >= failures + 1;
    });
    assert.match(await page.locator("#rate").innerText(), /^\d+(\.\d)?\/s$/);
    assert.match(await page.locator("#p50").innerText(), /^\d+ ms$/);
    assert.match(await page.locator("#up").innerText(), /^\d+ (s|min)$/);
    const pixels =
      "(c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].filter((v, i) => i % 4 === 3 && v > 0).length)(document.querySelector('#trace'))";
    assert.ok(Number(await page.evaluate(pixels)) > 0, "strokes are drawn");
  });

  test("the list is filtered by status and text", async () => {
    await visit("/broken");
    await page.getByRole("button", { name: "5xx" }).click();
    await page.getByText(/^\d+ of \d+$/).waitFor();
    const paths = await page.locator("#rows td.path").allInnerTexts();
    assert.ok(paths.length > 0 && paths.every((path) => path === "/broken"), paths.join());
    await page.getByRole("button", { name: "All" }).click();
    await page.keyboard.press("/");
    await page.keyboard.type("lovelace");
    await page.getByText(/^1 of \d+$/).waitFor();
    assert.deepEqual(await page.locator("#rows td.path").allInnerTexts(), ["/image"]);
    await page.keyboard.press("Escape");
    await page.locator("#count").getByText(/^\d+$/).waitFor();
  });

  test("with the keyboard alone a request is chosen, replayed, and copied as curl", async () => {
    await visit("/keys?a=[1]&token=x", { method: "PUT", body: "it's here" });
    await row("/keys").waitFor();
    await page.keyboard.press("Home");
    await page.getByRole("heading", { name: "PUT /keys" }).waitFor();
    const count = seen.length;
    await page.keyboard.press("r");
    await page.getByText(/^Replayed: 200/).waitFor();
    assert.deepEqual(
      seen.slice(count).map(({ method, url, body }) => [method, url, body]),
      [["PUT", "/keys?a=[1]&token=x", "it's here"]],
    );
    await page.getByRole("button", { name: "Replay of…" }).click();
    await page.keyboard.press("c");
    await page.getByText("curl command copied").waitFor();
    const command = String(await page.evaluate("navigator.clipboard.readText()"));
    assert.match(
      command,
      /^curl --request PUT --globoff 'http:\/\/demo\.localhost:\d+\/keys\?a=\[1\]&token=\[redacted\]'/,
    );
    assert.ok(command.endsWith(String.raw`--data-raw 'it'\''s here'`), command);
  });

  test("an edited request is replayed with hidden values in place, and faults are explained", async () => {
    await visit("/edit", {
      method: "POST",
      headers: { authorization: "Bearer hidden-value", "content-type": "application/json" },
      body: '{"n":1,"password":"hunter2"}',
    });
    await row("/edit").click();
    await page.getByRole("heading", { name: "POST /edit" }).waitFor();
    await page.keyboard.press("e");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Path").fill("no-slash");
    await page.keyboard.press("Enter");
    await dialog.getByRole("alert").getByText("must start with /").waitFor();
    await dialog.getByLabel("Path").fill("/edited");
    await dialog.getByLabel("Body").fill('{"n":2,"password":"[redacted]"}');
    await dialog
      .getByLabel("Headers")
      .fill("Content-Type: application/json\nAuthorization: Bearer [redacted]");
    await dialog.getByRole("button", { name: "Send" }).click();
    await page.getByRole("heading", { name: "POST /edited" }).waitFor();
    assert.deepEqual(seen.at(-1), {
      method: "POST",
      url: "/edited",
      body: '{"n":2,"password":"hunter2"}',
      token: "Bearer hidden-value",
    });
  });

  test("a share link is made, works once, and can be revoked", async () => {
    await page.getByRole("button", { name: "Share…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("works once").check();
    await dialog.getByRole("button", { name: "Create link" }).click();
    const field = dialog.getByLabel(/Link/);
    await field.waitFor();
    const { search } = new URL(await field.inputValue());
    assert.equal((await visit(`/shared${search}`)).status, 200);
    await dialog.getByRole("button", { name: "Create link" }).click();
    await dialog.getByRole("button", { name: "Revoke" }).last().click();
    await dialog.getByText("revoked", { exact: true }).waitFor();
    await page.keyboard.press("Escape");
  });

  test("pictures", { skip: process.env["PLATFORM_TEST_PICTURES"] === undefined }, async () => {
    const folder = process.env["PLATFORM_TEST_PICTURES"];
    await row("/orders").click();
    await page.screenshot({ path: `${folder}/inspector.png` });
    await page.emulateMedia({ colorScheme: "dark" });
    await row("/image").click();
    await page.screenshot({ path: `${folder}/inspector-dark.png` });
    await page.keyboard.press("e");
    await page.screenshot({ path: `${folder}/inspector-edit.png` });
    await page.keyboard.press("Escape");
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 360, height: 800 });
    await page.screenshot({ path: `${folder}/inspector-phone.png`, fullPage: true });
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  test("a lost client is shown, and the page has no faults and no missing names", async () => {
    inspector.onLost();
    await page.getByText(/^connecting to ws:/).waitFor();
    await page.setViewportSize({ width: 360, height: 800 });
    assert.ok(Number(await page.evaluate("document.documentElement.scrollWidth")) <= 360);
    const unnamed = await page.evaluate(
      "[...document.querySelectorAll('button, input, select, a[href]')].filter((e) => !(e.innerText || e.ariaLabel || e.labels?.length || e.title)).map((e) => e.outerHTML)",
    );
    assert.deepEqual(unnamed, []);
    // The path without a slash was answered with 400.
    assert.deepEqual(
      faults.filter((text) => !/status of 400/.test(text)),
      [],
    );
  });
});
