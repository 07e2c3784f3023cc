// Console sessions in Redis, in Chromium: a gateway that is killed, a sign-in that is too old, an end at identity.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { createSecretBox } from "@platform/kernel/secrets";
import { chromiumSkip, findFreePort, startChromium } from "@platform/kernel/testing";
import { RedisClient } from "@platform/redis";
import { findRedisSkip, startRedis } from "@platform/redis/testing";
import { openSession, sealSession } from "../../../packages/console/src/session/sealed-session.ts";
import { ADMIN, BOB, Platform } from "../../identity/platform.ts";
import { LOOKS, openPlatform, type ConsolePage, keepSignIn } from "./chromium.ts";

const skip = chromiumSkip || findRedisSkip();
const KEY = randomBytes(32);
const PREFIX = "{platform:console}:session:";
const OLD_MS = 660_000;

let platform: Platform;
let browser: Browser;
let redis: RedisClient;
let bob = "";
const stops: unknown[] = [];

before(async () => {
  if (skip !== false) return;
  // A hook within a hook would run at its end.
  const server = await startRedis({ after: (stop) => stops.push(stop) }, await findFreePort());
  const environment = {
    PLATFORM_REDIS_URL: server.url,
    PLATFORM_GATE_CONSOLE_ENCRYPTION_KEYS: `base64:${KEY.toString("base64")}`,
  };
  [platform, browser] = await Promise.all([Platform.start({ environment }), startChromium()]);
  redis = new RedisClient({ url: server.url, onFailure: () => {}, onRecovery: () => {} });
  const { user } = (await platform.signIn(BOB)) as unknown as { user: { id: string } };
  bob = user.id;
});

after(async () => {
  redis?.close();
  await browser?.close();
  await platform?.stop();
  for (const stop of stops) (stop as () => void)();
});

async function readCookie({ page }: ConsolePage): Promise<string | undefined> {
  const cookies = await page.context().cookies(platform.console.origin);
  return cookies.find(({ name }) => name === "platform_console")?.value;
}

/** Makes all sessions eleven minutes older than they are. */
async function ageSessions(): Promise<void> {
  const box = createSecretBox("gate_console", [KEY]);
  for (const key of (await redis.send("KEYS", `${PREFIX}*`)) as string[]) {
    const id = key.slice(PREFIX.length);
    const [data, used] = (await redis.send("HMGET", key, "data", "used")) as [string, string];
    const session = openSession(data, { id, lastUsedMs: Number(used), box });
    const old = { ...session, authenticatedMs: session.authenticatedMs - OLD_MS };
    await redis.send("HSET", key, "data", sealSession(old, box));
    await redis.send("HINCRBY", key, "version", "1");
  }
}

test("a gateway that was killed signs nobody out", { skip }, async (t) => {
  const console = await openPlatform(t, browser, platform, LOOKS[0], "/identity/users");
  const { page } = console;
  const before = await readCookie(console);
  process.kill(platform.pids.get("gate")!, "SIGKILL");
  const isBack = (): Promise<boolean> =>
    fetch(`${platform.console.origin}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (await isBack()) await sleep(50);
  while (!(await isBack())) await sleep(100);
  await page.reload();
  await page.locator(`main tr[data-row='${bob}']`).waitFor();
  assert.equal(await readCookie(console), before, "the same session, without a way to identity");
});

test("a change of a person asks for a new sign-in, and returns to it", { skip }, async (t) => {
  const path = `/identity/users?sel=${bob}`;
  const console = await openPlatform(t, browser, platform, LOOKS[0], path);
  const { page } = console;
  const old = await readCookie(console);
  // The filter of the list has a button "Disabled".
  const disable = page.getByRole("button", { name: /^Disable(?!d)/ });
  await disable.waitFor();
  await ageSessions();
  await disable.click();
  const dialog = page.getByRole("dialog", { name: "Sign in again" });
  await dialog.waitFor();
  await platform.signIn(BOB);
  await dialog.getByRole("link", { name: "Continue with identity" }).click();
  // Identity knows the user, and still asks.
  const password = page.getByLabel("Password").first();
  await password.fill(ADMIN.password);
  const username = page.getByLabel("Username").first();
  if (await username.isVisible()) await username.fill(ADMIN.username);
  await password.press("Enter");
  await page.waitForURL(`${platform.console.origin}/ui${path}`);
  assert.notEqual(await readCookie(console), old, "a new session");
  await keepSignIn(console, platform);
  await disable.click();
  await page.getByText("all sessions have ended").waitFor();
  await assert.rejects(platform.signIn(BOB), "bob is disabled");
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByText("Enabled.").waitFor();
});

test("a session that ends at identity ends in the open page", { skip }, async (t) => {
  const console = await openPlatform(t, browser, platform, LOOKS[0], "/identity/users");
  const { page } = console;
  await page.getByText("live", { exact: true }).waitFor();
  const { session_token: token, user } = (await platform.signIn(ADMIN)) as unknown as {
    session_token: string;
    user: { id: string };
  };
  const json = { user_id: user.id };
  await platform.identity("POST", "/api/v1/sessions/invalidate", json, token);
  // Nobody touches the page.
  await page.getByRole("link", { name: "Continue with identity" }).waitFor();
  assert.equal(await page.locator("main tr[data-row]").count(), 0, "no data is left on it");
});
