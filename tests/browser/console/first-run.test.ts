// The page of a new installation: its four commands are run as they are printed, and each is ticked as it arrives.
import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { after, before, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Locator } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { anyPort, find, findStarted, makeFolder, run } from "@platform/testing/platform-process";
import { ADMIN } from "../../identity/platform.ts";
import { checkPage, openAt, signInAtIdentity } from "./chromium.ts";

const PROGRAMS = ["curl", "aws", "kcat"];
const missing = PROGRAMS.filter((name) => spawnSync("which", [name]).status !== 0);
const skip = missing.length > 0 ? `${missing.join(", ")}: not installed` : chromiumSkip;
/** The page shows the folder of this installation, quoted. */
const DATA = "all data";
/** Requests of the sign-in are in the gateway's rate for some seconds, in which the page ignores further ones. */
const REPEAT_MS = 8_000;

const folder = makeFolder();
let browser: Browser;
let up: ReturnType<typeof run>;

before(async () => {
  if (skip !== false) return;
  const env = {
    PLATFORM_AUTH_ADMIN_USER: ADMIN.username,
    PLATFORM_AUTH_ADMIN_PASSWORD: ADMIN.password,
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
    env: { ...process.env, PLATFORM_TUNNEL_DATA_DIR: makeFolder() },
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

/** Runs the command of a step as often as a person would until the page shows that it arrived; returns the last run. */
async function repeat(t: TestContext, step: Locator, arrived: Locator): Promise<ChildProcess> {
  for (;;) {
    const child = runCommand(t, await step.locator("code").innerText());
    const isSeen = await arrived.waitFor({ timeout: REPEAT_MS }).then(
      () => true,
      () => false,
    );
    if (isSeen) return child;
  }
}

test("four commands, each ticked as it arrives", { skip }, async (t) => {
  const started = findStarted(up.output().out)!;
  const port = find(started, "gate").listeners.find(({ name }) => name === "console")!.port;
  const opened = await openAt(t, browser, `http://localhost:${port}/ui/`);
  const { page } = opened;
  await signInAtIdentity(page);
  const steps = page.locator("section.step");
  await steps.first().waitFor();
  assert.equal(await steps.count(), 4);
  await checkPage(opened, "first run");
  assert.equal(await page.locator("section.step.done").count(), 0, "nothing has arrived yet");
  // It stays the first page although storage has an object: its own access log.
  await writeAccessLog(started);
  // No port is shown before it is known: a default port may belong to another program.
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
  const gatePort = find(started, "gate").listeners.find(({ name }) => name === "http")!.port;
  assert.match(await first.innerText(), new RegExp(`:${gatePort}/`));
  for (let n = 0; n < 4; n += 1) {
    const step = steps.nth(n);
    const arrived = step.getByText("arrived at");
    const command = await step.locator("code").innerText();
    const child = n === 0 ? await repeat(t, step, arrived) : runCommand(t, command);
    await arrived.waitFor();
    assert.equal(await page.locator("section.step.done").count(), n + 1, command);
    if (n < 3 && child.exitCode === null) await once(child, "exit");
    if (n < 3) assert.equal(child.exitCode, 0, command);
  }
  await page.getByRole("button", { name: "Open the overview" }).click();
  await page.getByRole("table", { name: "Services" }).waitFor();
  await checkPage(opened, "overview after the first run");
});
