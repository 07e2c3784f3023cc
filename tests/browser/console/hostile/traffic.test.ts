// Hostile text in every field of messaging, mail and tunnels: shown, never run.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import { Platform, startUpstream } from "../../../identity/platform.ts";
import { HOSTILE, openPlatform, PATIENCE_MS } from "../chromium.ts";
import { checkScreen, poison } from "./hostile.ts";

const TOPIC = "orders";
const SCREENS = [
  "/messaging/topics",
  `/messaging/topics/${TOPIC}/tail`,
  `/messaging/topics/${TOPIC}/browse`,
  `/messaging/topics/${TOPIC}/groups`,
  `/messaging/topics/${TOPIC}/schema`,
  `/messaging/topics/${TOPIC}/settings`,
  "/messaging/groups",
  "/messaging/dead",
  "/messaging/connections",
  "/mail/inbox",
  "/mail/messages",
  "/mail/templates",
  "/mail/suppression",
  "/tunnels",
];

let browser: Browser;
let platform: Platform;
let local: Awaited<ReturnType<typeof startUpstream>>;
let tunnel: Awaited<ReturnType<Platform["share"]>>;
const subscription = new AbortController();
/** Kept: an abandoned response is cancelled. */
let subscribed: Response;

before(async () => {
  if (chromiumSkip !== false) return;
  [platform, browser] = await Promise.all([Platform.start(), startChromium()]);
  local = await startUpstream((_incoming, response) => response.end(HOSTILE));
  tunnel = await platform.share(Number(new URL(local.url).port), "demo");
  await sendThroughTunnel();
  await prepareMail();
  await prepareMessages();
  await subscribe();
});

after(async () => {
  subscription.abort();
  await browser?.close();
  await tunnel?.close();
  local?.close();
  await platform?.stop();
});

async function sendThroughTunnel(): Promise<void> {
  const { hostname, port } = tunnel.url;
  const headers = { host: `${hostname}:${port}`, "x-note": "a note" };
  await new Promise<void>((resolve, reject) => {
    request({ agent: false, host: "127.0.0.1", port, path: "/hook", headers }, (answer) =>
      answer.resume().on("end", resolve),
    )
      .on("error", reject)
      .end();
  });
}

async function prepareMail(): Promise<void> {
  const send = (path: string, body: object): Promise<unknown> =>
    platform.callService(platform.notify, "PLATFORM_NOTIFY_TOKEN", path, body);
  const mail = { to: "eve@example.org", subject: HOSTILE, text: HOSTILE, html: HOSTILE };
  await send("/send", mail);
  await send("/templates", { name: "welcome", subject: "Hello", html: HOSTILE, text: HOSTILE });
  await send("/suppression", { email: "gone@example.org", reason: "manual" });
}

async function prepareMessages(): Promise<void> {
  const send = (path: string, body?: object): Promise<unknown> =>
    platform.callService(platform.pulse, platform.admin, path, body);
  await send("/publish", {
    topic: TOPIC,
    key: HOSTILE,
    payload: JSON.stringify({ note: HOSTILE }),
  });
  await send("/offsets", { group: "warehouse", topic: TOPIC, offset: 0 });
  await send(`/topics/${TOPIC}/schema?compatibility=none`, { note: "string" });
  await send("/publish", { topic: "refunds", payload: "{}", ttl_ms: 1 });
  const endsMs = performance.now() + PATIENCE_MS;
  while (!JSON.stringify(await send("/topics/refunds/dlq/summary")).includes('"count":1')) {
    if (performance.now() > endsMs) throw new Error("the message does not die");
    await send("/tail?topic=refunds&n=1");
  }
}

/** Opens a connection, for the list of them. */
async function subscribe(): Promise<void> {
  subscribed = await fetch(`${platform.pulse.origin}/api/v1/subscribe/${TOPIC}`, {
    headers: { authorization: `Bearer ${platform.admin}` },
    signal: subscription.signal,
  });
  assert.equal(subscribed.status, 200);
}

test("each screen shows hostile text as it is", { skip: chromiumSkip }, async (t) => {
  const console = await openPlatform(t, browser, platform);
  const { page } = console;
  page.on("dialog", () => console.reports.push("a dialog opened"));
  await poison(page);
  await page.reload();
  await page.locator("main#content").waitFor();
  for (const path of SCREENS) await checkScreen(console, path);
});
