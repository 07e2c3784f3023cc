// The console on the gateway's own listener, with storage behind it and in Chromium.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { chromiumSkip, findFreePort, startChromium } from "@platform/kernel/testing";
import { openConsolePage } from "../../../services/gate/test/fixture/console-page.ts";
import {
  type Runtime,
  runtimes,
  startGate,
} from "../../../services/gate/test/fixture/gate-process.ts";
import { serve } from "../../../services/vault/test/serving/serving.ts";
import { vaultRoot } from "@platform/testing/staged-vault";
import { checkPage, goTo, LOOKS, openConsole } from "./chromium.ts";

const TOKEN = "an-operator-token-of-some-length";
const OPERATOR = { service: "gate", token: TOKEN };

/** Starts a gateway with a shared console. */
async function start(t: TestContext, runtime: Runtime, port: number, config: object) {
  const own = { addr: `127.0.0.1:${port}`, auth_token: TOKEN, console_addr: "shared" };
  await startGate(t, { runtime, config: { ...own, ...config } });
}

for (const runtime of runtimes) {
  test(`pages, sessions and storage at the gateway's address (${runtime.name})`, async (t) => {
    const serving = await serve();
    t.after(() => serving[Symbol.asyncDispose]());
    const services = [`vault=http://127.0.0.1:${serving.vault.adminPort}`];
    const port = await findFreePort();
    await start(t, runtime, port, { console_services: services });
    const { ask, signIn } = openConsolePage({ port, origin: `http://localhost:${port}` });
    const page = await ask("/ui/gateway/routes");
    assert.equal(page.status, 200);
    assert.match(page.text, /<script type="module"/);
    const script = /<script type="module"[^>]* src="([^"]+)"/.exec(page.text)![1]!;
    assert.match(String((await ask(script)).headers["cache-control"]), /immutable/);

    const first = await signIn(OPERATOR);
    const keys = { access_key: vaultRoot.accessKey, secret_key: vaultRoot.secretKey };
    const cookie = await signIn({ service: "vault", ...keys }, { headers: { cookie: first } });
    // A slash in a key stays encoded on its way; a large body passes.
    await serving.s3.must("PUT", "/photos");
    const path = "/svc/vault/api/v1/buckets/photos/objects/2026%2Fa%3Bb%20c.txt";
    const large = "x".repeat(3_000_000);
    const put = await ask(path, {
      method: "PUT",
      body: large,
      headers: { cookie, "content-type": "application/octet-stream" },
    });
    assert.ok(put.status < 300, put.text);
    assert.equal((await serving.s3.must("GET", "/photos/2026/a%3Bb%20c.txt")).text, large);
    assert.equal((await ask(path, { headers: { cookie } })).text, large);
    const routes = "/svc/gate/api/v1/routes";
    assert.equal((await ask(routes, { headers: { cookie } })).status, 200);
    const climbs = ["/svc/vault/..%2f..%2fapi/v1/routes", "/svc/../../api/v1/routes"];
    for (const climb of climbs) {
      const answer = await ask(climb, { headers: { cookie } });
      assert.ok([400, 401, 404].includes(answer.status), `${climb}: ${answer.status}`);
    }
    const out = { method: "POST", body: {}, headers: { cookie } };
    assert.equal((await ask("/console/logout", out)).status, 200);
    assert.equal((await ask(routes, { headers: { cookie } })).status, 401);
  });
}

test(
  "people sign in and work at a host of the gateway, which has no other pages",
  { skip: chromiumSkip },
  async (t) => {
    const upstream = createServer((_request, response) => response.end("a page of a program"));
    await once(upstream.listen(0, "127.0.0.1"), "listening");
    t.after(() => (upstream.closeAllConnections(), upstream.close()));
    const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const port = await findFreePort();
    const url = `http://console.localhost:${port}`;
    const routes = [{ prefix: "/", target, auth: { type: "none" } }];
    await start(t, runtimes[0]!, port, { console_url: url, routes });
    const browser = await startChromium();
    t.after(() => browser.close());
    for (const look of LOOKS) {
      const opened = await openConsole(t, browser, { url, token: TOKEN, look });
      for (const path of ["/gateway/routes", "/gateway/upstreams", "/gateway/log"]) {
        await goTo(opened, path);
        await checkPage(opened, `${path}, ${look.name}`);
      }
      const { page } = opened;
      await page.getByText("live", { exact: true }).first().waitFor();
      await page.goto(url);
      await page.locator("main#content.body").waitFor();
      assert.equal(new URL(page.url()).pathname, "/ui/");
      const read = async (address: string): Promise<string> =>
        (await (await page.goto(address))?.text()) ?? "";
      assert.doesNotMatch(await read(`${url}/shop`), /a page of a program/);
      assert.match(await read(`http://localhost:${port}/ui/`), /a page of a program/);
      await signOutInAnotherTab(page, url);
    }
  },
);

/** The other tab says why it shows the sign-in page, and is live again after it. */
async function signOutInAnotherTab(page: Page, url: string): Promise<void> {
  await page.goto(`${url}/ui/settings`);
  await page.getByText("live", { exact: true }).first().waitFor();
  const other = await page.context().newPage();
  const size = page.viewportSize();
  if (size !== null) await other.setViewportSize(size);
  await other.goto(`${url}/ui/settings`);
  await other.locator("main#content.body").waitFor();
  if (size !== null && size.width < 600) {
    await other.getByRole("button", { name: "More" }).click();
  }
  await other.getByRole("button", { name: "Sign out" }).click();
  await other.getByLabel("Token").waitFor();
  assert.equal(await other.getByText("The session has ended.").count(), 0, "the user signed out");
  await page.getByText("The session has ended. Sign in again.").waitFor();
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("main#content.body").waitFor();
  await page.getByText("live", { exact: true }).first().waitFor();
}
