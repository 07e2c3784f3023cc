// Routes in Chromium: edited as fields and as JSON, tried before they are saved, merged after another change, deleted with undo.
import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { chromiumSkip } from "@platform/kernel/testing";
import { startUpstream } from "../../identity/platform.ts";
import { checkPage, LOOKS, takePicture } from "./chromium.ts";
import { ask, joinGateway, openGateway, readRoutes, startOwnGateway } from "./gateway-alone.ts";

const TARGET = "http://127.0.0.1:9";

for (const look of LOOKS) {
  test(`a route is made and changed: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    const gate = await joinGateway();
    const opened = await openGateway(t, gate, look, "/gateway/routes");
    const { page } = opened;
    await page.getByRole("button", { name: "New route" }).click();
    await page.getByLabel("Prefix", { exact: true }).fill("/orders");
    await page.getByRole("textbox", { name: /^Targets/ }).fill(`${TARGET} 3\nhttp://127.0.0.1:10`);
    await page.getByLabel("Requests a minute and address").fill("-1");
    const save = page.getByRole("button", { name: "Save" });
    await page
      .getByText(/rate_limit_rpm/)
      .first()
      .waitFor();
    assert.equal(await save.getAttribute("aria-disabled"), "true");
    await checkPage(opened, "refused");
    await page.getByLabel("Requests a minute and address").fill("600");
    await page.getByText("adds a route").waitFor();
    await checkPage(opened, "new route");
    await takePicture(opened, `route-new-${look.width}`);
    await save.click();
    await page.getByRole("heading", { name: "/orders" }).waitFor();
    const targets_weighted = [
      { url: TARGET, weight: 3 },
      { url: "http://127.0.0.1:10", weight: 1 },
    ];
    const made = { prefix: "/orders", targets_weighted, strip_prefix: true, rate_limit_rpm: 600 };
    assert.deepEqual(await readRoutes(gate), [made]);

    await page.getByRole("link", { name: "Edit" }).click();
    assert.equal(await save.getAttribute("title"), "Nothing was changed");
    await page.getByRole("button", { name: "JSON" }).click();
    const editor = page.locator(".cm-content");
    await editor.fill(JSON.stringify({ ...made, rate_limit_rpm: -1, colour: 1 }, null, 2));
    const problem = page.getByRole("button", { name: /^Line 14/ });
    await problem.waitFor();
    await page
      .getByText(/colour: /)
      .first()
      .waitFor();
    await checkPage(opened, "problems");
    await takePicture(opened, `route-problems-${look.width}`);
    await editor.fill(JSON.stringify({ ...made, rate_limit_rpm: 60, access_log: true }, null, 2));
    await page.getByText(/changes .*rate_limit_rpm/).waitFor();
    await page.locator("pre .add", { hasText: '"rate_limit_rpm": 60' }).waitFor();
    await checkPage(opened, "difference");
    await takePicture(opened, `route-diff-${look.width}`);
    await save.click();
    await page.getByRole("link", { name: "Edit" }).waitFor();
    assert.deepEqual(await readRoutes(gate), [{ ...made, rate_limit_rpm: 60, access_log: true }]);
  });

  test(`two changes of one route are merged: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    const gate = await joinGateway();
    const route = { prefix: "/orders", target: TARGET, rate_limit_rpm: 600 };
    await ask(gate, "POST", "/routes", route);
    const opened = await openGateway(t, gate, look, "/gateway/routes/%2Forders/edit");
    const { page } = opened;
    await page.getByLabel("Requests a minute and address").fill("60");
    await page.getByLabel("Log each request").check();
    await page.getByText(/changes /).waitFor();
    // A change of another route is no conflict.
    await ask(gate, "POST", "/routes", { prefix: "/other", target: TARGET });
    const theirs = { ...route, rate_limit_rpm: 6_000, max_body_size: 1_000 };
    await ask(gate, "POST", "/routes", theirs);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").getByText("The route was changed meanwhile").waitFor();
    assert.deepEqual((await readRoutes(gate))[0], theirs, "nothing was overwritten");
    const use = page.getByRole("button", { name: "Use the chosen values" });
    assert.equal(await use.getAttribute("title"), "Settings not chosen yet: 1");
    await checkPage(opened, "conflict");
    await takePicture(opened, `route-conflict-${look.width}`);
    const limit = page.getByRole("group", { name: "rate_limit_rpm" });
    assert.deepEqual(await limit.locator("code").allTextContents(), ["600", "6000", "60"]);
    await limit.getByLabel("Mine").check();
    await use.click();
    await page.getByText(/changes /).waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The route /orders was saved.").waitFor();
    const merged = { ...theirs, rate_limit_rpm: 60, access_log: true };
    const found = (await readRoutes(gate)).find(({ prefix }) => prefix === "/orders");
    assert.deepEqual(found, merged);
  });
}

test(
  "the palette lists every section, and routes by methods",
  { skip: chromiumSkip },
  async (t) => {
    const gate = await joinGateway();
    await ask(gate, "POST", "/routes", { prefix: "/orders", methods: ["GET"], target: TARGET });
    const { page } = await openGateway(t, gate, LOOKS[0], "/gateway/routes");
    const sections = await page.locator("nav.rail .sub a, nav.rail a[href^='/ui/gateway/']").all();
    const names = await Promise.all(sections.map((one) => one.innerText()));
    assert.ok(names.length >= 6, names.join());
    await page.keyboard.press("Control+k");
    const options = page.getByRole("dialog").getByRole("option");
    const shown = await options.allInnerTexts();
    for (const name of names.map((one) => one.split("\n")[0]!)) {
      assert.ok(
        shown.some((one) => one.includes(name)),
        `${name} is not among ${shown.join()}`,
      );
    }
    await page.getByRole("dialog").getByRole("combobox").fill("/orders");
    await options.filter({ hasText: "/orders GET" }).first().click();
    await page.getByRole("heading", { name: "/orders" }).waitFor();
    await page.getByRole("link", { name: "Edit" }).waitFor();
  },
);

test("another route's change does not disturb a save", { skip: chromiumSkip }, async (t) => {
  const gate = await joinGateway();
  await ask(gate, "POST", "/routes", { prefix: "/orders", target: TARGET });
  const { page } = await openGateway(t, gate, LOOKS[0], "/gateway/routes/%2Forders/edit");
  await page.getByLabel("Log each request").check();
  await page.getByText(/changes /).waitFor();
  await ask(gate, "POST", "/routes", { prefix: "/other", target: TARGET });
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The route /orders was saved.").waitFor();
  assert.deepEqual(
    (await readRoutes(gate)).map(({ prefix }) => prefix),
    ["/orders", "/other"],
  );
});

test("a route that was deleted elsewhere can be added again", { skip: chromiumSkip }, async (t) => {
  const gate = await joinGateway();
  await ask(gate, "POST", "/routes", { prefix: "/orders", target: TARGET });
  const { page } = await openGateway(t, gate, LOOKS[0], "/gateway/routes/%2Forders/edit");
  await page.getByLabel("Log each request").check();
  await page.getByText(/changes /).waitFor();
  await ask(gate, "DELETE", "/routes?prefix=/orders");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The route was deleted meanwhile").waitFor();
  assert.deepEqual(await readRoutes(gate), []);
  await page.getByRole("button", { name: "Continue with a new route" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The route /orders was saved.").waitFor();
  assert.deepEqual(await readRoutes(gate), [
    { prefix: "/orders", target: TARGET, access_log: true },
  ]);
});

test("a deletion is undone within 8 s, or happens", { skip: chromiumSkip }, async (t) => {
  const gate = await joinGateway();
  await ask(gate, "POST", "/routes", { prefix: "/orders", target: TARGET });
  const opened = await openGateway(t, gate, LOOKS[0], "/gateway/routes/%2Forders");
  const { page } = opened;
  const remove = async (): Promise<void> => {
    await page.getByRole("button", { name: "More actions" }).click();
    await page.getByRole("button", { name: "Delete the route…" }).click();
    await page.getByText("Targets that get no more requests: 1.").waitFor();
    await checkPage(opened, "delete");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("row").getByText("being deleted").waitFor();
  };
  await remove();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByRole("row").getByText("Serving").waitFor();
  assert.equal((await readRoutes(gate)).length, 1);
  await page.getByRole("link", { name: "/orders" }).click();
  await remove();
  await page.getByText("No routes yet").waitFor();
  assert.deepEqual(await readRoutes(gate), []);
});

test("requests by target, with the steps of a canary", { skip: chromiumSkip }, async (t) => {
  const gate = await joinGateway();
  const [stable, canary] = await Promise.all(
    [200, 503].map((status) =>
      startUpstream((_request, response) => response.writeHead(status).end()),
    ),
  );
  t.after(() => {
    stable!.close();
    canary!.close();
  });
  const targets_weighted = [stable!, canary!].map(({ url }) => ({ url, weight: 50 }));
  const route = { prefix: "/shop", auth: { type: "none" }, circuit_breaker: false };
  const promotion = { canary_auto_promote: true, canary_promote_sec: 3_600 };
  const errors = { canary_max_error_rate: 1 };
  const limits = { max_concurrent_requests: 200, max_queue_size: 64, queue_timeout_ms: 1_500 };
  await ask(gate, "POST", "/routes", {
    ...route,
    targets_weighted,
    ...promotion,
    ...errors,
    ...limits,
  });
  const sending = setInterval(() => void fetch(`${gate.url}/shop`).catch(() => undefined), 20);
  t.after(() => clearInterval(sending));
  for (const look of LOOKS) {
    const opened = await openGateway(t, gate, look, "/gateway/routes/%2Fshop");
    const { page } = opened;
    const chart = page.getByRole("img", { name: /^Requests per second\. / });
    await chart.locator("canvas").waitFor();
    const legend = page.locator(".target-legend");
    for (const text of [stable!.url, canary!.url, "failed"]) await legend.getByText(text).waitFor();
    const failed = new RegExp(`${canary!.url}: [1-9].*, failed: [1-9]`);
    await page.getByRole("img", { name: failed }).waitFor();
    await page.getByRole("img", { name: /^Latency\. p50: \d.*, p99: \d/ }).waitFor();
    const row = page.getByRole("row").filter({ hasText: canary!.url });
    await row.getByText("100 %").waitFor();
    await page.getByRole("region", { name: "This route" }).waitFor();
    if (look.width > 600) await row.getByText("50 %").waitFor();
    const steps = page.getByRole("list", { name: "Steps" }).getByRole("listitem");
    const texts = await steps.allInnerTexts();
    assert.match(texts[0]!, /50 %[^]*100 % errors/);
    assert.match(texts[1]!, /60 %[^]*\+10 each 1\sh/);
    assert.match(texts[2]!, /100 %[^]*all traffic/);
    const rules = await page.locator(".kv").innerText();
    for (const rule of [/open to all/, /200 at once, 64 wait up to 1\s500\sms/, /breaker\s+off/])
      assert.match(rules, rule);
    await checkPage(opened, `targets, ${look.name}`);
    await takePicture(opened, `targets ${look.name}`);

    await page.emulateMedia({ media: "print" });
    const paper = "rgb(255, 255, 255)";
    const readPaper = `getComputedStyle(document.querySelector(".main")).backgroundColor`;
    assert.equal(await page.evaluate(readPaper), paper, "ink on white");
    for (const hidden of [".rail", ".trace", ".phone-bar", ".top"])
      assert.equal(await page.locator(hidden).first().isVisible(), false, hidden);
    assert.ok(await page.getByText(stable!.url).first().isVisible());
    await takePicture(opened, `printed ${look.name}`);
    await page.emulateMedia({ media: "screen" });
    // A window of 1 280 by 1 024 px at 400 %.
    await page.setViewportSize({ width: 320, height: 256 });
    const readHeight = `document.querySelector("main").clientHeight`;
    assert.ok(Number(await page.evaluate(readHeight)) >= 128, "half of a low window is the page");
    await checkPage(opened, `a low window, ${look.name}`);
    await page.getByRole("button", { name: "1 day" }).click();
    await page.waitForURL(/span=1d/);
    await page.getByText("There are no figures for this time yet.").waitFor();
  }
});

test(
  "a log that cannot be followed is a note, and goes on by itself",
  { skip: chromiumSkip },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "console-log-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const path = join(folder, "access.jsonl");
    const answer = { auth: { type: "none" }, respond: { status: 200 } };
    const routes = [{ prefix: "/shop", access_log: true, ...answer }];
    const gate = await startOwnGateway(t, { access_log_path: path, routes });
    const opened = await openGateway(t, gate, LOOKS[0], "/gateway/log");
    const { page } = opened;
    const rows = page.locator("main tr[data-row]");
    await page.getByText("No request matches").waitFor();
    await fetch(`${gate.url}/shop/before`);
    await rows.filter({ hasText: "/shop/before" }).waitFor();
    // Links that refer to each other can be read by nobody.
    renameSync(path, `${path}.kept`);
    symlinkSync(path, path);
    await page.getByText("The access log cannot be read (ELOOP).").waitFor();
    await checkPage(opened, "no log");
    await rows.filter({ hasText: "/shop/before" }).waitFor();
    renameSync(`${path}.kept`, path);
    await page.getByText("The access log cannot be read (ELOOP).").waitFor({ state: "detached" });
    await fetch(`${gate.url}/shop/after`);
    await rows.filter({ hasText: "/shop/after" }).waitFor();
  },
);
