// The page of a new installation: its steps are sent by button or run as they are printed, and each is ticked as it arrives.
import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { after, before, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Locator, Page } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { anyPort, find, findStarted, makeFolder, run } from "@platform/testing/platform-process";
import { ADMIN } from "../../identity/platform.ts";
import { checkPage, openAt, signInAtIdentity, takePicture } from "./chromium.ts";

const PROGRAMS = ["curl", "aws", "kcat"];
const missing = PROGRAMS.filter((name) => spawnSync("which", [name]).status !== 0);
const skip = missing.length > 0 ? `${missing.join(", ")}: not installed` : chromiumSkip;
/** The page shows the folder of this installation, quoted. */
const DATA = "all data";

const folder = makeFolder();
/** The folder of this user's list of platforms. */
const state = makeFolder();
let browser: Browser;
let up: ReturnType<typeof run>;

before(async () => {
  if (skip !== false) return;
  const env = {
    PLATFORM_AUTH_ADMIN_USER: ADMIN.username,
    PLATFORM_AUTH_ADMIN_PASSWORD: ADMIN.password,
    XDG_STATE_HOME: state,
  };
  browser = await startChromium();
  up = run(["up", "--json", "--data", DATA, ...anyPort], env, "", folder);
  await up.waitFor(findStarted);
});

after(async () => {
  await browser?.close();
  up?.child.kill("SIGTERM");
  await up?.exit;
});

/** Runs a command of the page in a shell, in the folder of the installation, until the test ends. */
function runCommand(t: TestContext, command: string): ChildProcess {
  const child = spawn("sh", ["-c", command], {
    cwd: folder,
    stdio: "inherit",
    detached: true,
    env: { ...process.env, XDG_STATE_HOME: state, PLATFORM_TUNNEL_DATA_DIR: makeFolder() },
  });
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    process.kill(-child.pid!, "SIGTERM");
    await ended;
  });
  return child;
}

/** Sends a request to storage, and waits until its access log, which is an object, is written. */
async function writeAccessLog(started: NonNullable<ReturnType<typeof findStarted>>): Promise<void> {
  const { listeners } = find(started, "vault");
  const port = (name: string): number => listeners.find((one) => one.name === name)!.port;
  assert.equal((await fetch(`http://127.0.0.1:${port("http")}/`)).status, 403);
  for (;;) {
    const metrics = await fetch(`http://127.0.0.1:${port("admin")}/metrics`);
    if (/^platform_vault_objects_total 1$/m.test(await metrics.text())) return;
    await sleep(500);
  }
}

/** Clicks the button of a step; returns what the page says of it. */
async function send(step: Locator): Promise<string> {
  await step.getByRole("button", { name: "Send it for me" }).click();
  const said = step.locator(".sent [role=status]");
  await said.waitFor();
  return said.innerText();
}

/** Asserts that no port is shown before it is known: a default port may belong to another program. */
async function checkPorts(
  page: Page,
  steps: Locator,
  { listeners }: ReturnType<typeof find>,
): Promise<void> {
  const held = Promise.withResolvers<void>();
  await page.route("**/svc/runtime/api/v1/services", async (route) => {
    await held.promise;
    await route.continue();
  });
  await page.reload();
  await steps.first().waitFor();
  const first = steps.first().locator("code");
  assert.equal(await first.innerText(), "…");
  assert.equal(await steps.getByRole("button", { name: "Copy" }).count(), 0);
  held.resolve();
  await steps.getByRole("button", { name: "Copy" }).first().waitFor();
  const { port } = listeners.find(({ name }) => name === "http")!;
  assert.match(await first.innerText(), new RegExp(`:${port}/`));
}

test("five steps, each ticked as it arrives, by button and by command", { skip }, async (t) => {
  const started = findStarted(up.output().out)!;
  const port = find(started, "gate").listeners.find(({ name }) => name === "console")!.port;
  const opened = await openAt(t, browser, `http://localhost:${port}/ui/`);
  const { page } = opened;
  await signInAtIdentity(page);
  const steps = page.locator("section.step");
  await steps.first().waitFor();
  assert.equal(await steps.count(), 5);
  await checkPage(opened, "first run");
  assert.equal(await page.locator("section.step.done").count(), 0, "nothing has arrived yet");
  // It stays the first page although storage has an object: its own access log.
  await writeAccessLog(started);
  await checkPorts(page, steps, find(started, "gate"));
  const done = async (n: number): Promise<void> => {
    await steps.nth(n).getByText("arrived at").waitFor();
    assert.equal(await page.locator("section.step.done").count(), n + 1);
  };
  const runStep = async (n: number): Promise<ChildProcess> =>
    runCommand(t, await steps.nth(n).locator("code").innerText());
  const succeed = async (n: number): Promise<void> => {
    const child = await runStep(n);
    if (child.exitCode === null) await once(child, "exit");
    assert.equal(child.exitCode, 0, await steps.nth(n).locator("code").innerText());
  };
  assert.match(await send(steps.nth(0)), /^answered with 200 in \d+ ms$/);
  await done(0);
  await succeed(0);
  await succeed(1);
  await done(1);
  assert.equal(await send(steps.nth(1)), "first/hello.txt");
  assert.equal(await send(steps.nth(2)), "orders, offset 0");
  await done(2);
  await succeed(2);
  await runStep(3);
  await done(3);
  const [address = ""] = (await send(steps.nth(3))).split(",");
  const shared = await openAt(t, browser, `${address}/hello`);
  assert.match(await shared.page.locator("body").innerText(), /hello/i);
  await checkPage(opened, "all but the last step");
  await takePicture(opened, "first-run");
  await runStep(4);
  await done(4);
  const link = steps.nth(4).getByRole("link");
  assert.match(await link.innerText(), /^http:\/\/my-app\.localhost:/);
  await page.getByRole("button", { name: "Open the overview" }).click();
  await page.getByRole("table", { name: "Services" }).waitFor();
  await checkPage(opened, "overview after the first run");
  // It stays at its address, and in the palette.
  await page.keyboard.press("Control+k");
  await page.getByRole("option", { name: "First steps" }).click();
  await page.waitForURL("**/ui/start");
  await page.getByText("arrived at").first().waitFor();
});
