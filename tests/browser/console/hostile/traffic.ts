// Hostile text in every field of messaging and tunnels: shown, never run.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { type Platform, startUpstream } from "../../../identity/platform.ts";
import { goTo, HOSTILE, openPlatform, PATIENCE_MS } from "../chromium.ts";
import { checkHarmless, checkScreen, poison, stopPoison } from "./hostile.ts";
import { checkCovered, TOPIC, TRAFFIC_SCREENS } from "./screens.ts";
import { joinInstallation } from "../installation.ts";

const SUBDOMAIN = "hostile";

let browser: Browser;
let platform: Platform;
let local: Awaited<ReturnType<typeof startUpstream>>;
let tunnel: Awaited<ReturnType<Platform["share"]>>;
const subscription = new AbortController();
/** Kept: an abandoned response is cancelled. */
let subscribed: Response;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  local = await startUpstream((_incoming, response) => response.end(HOSTILE));
  tunnel = await platform.share(Number(new URL(local.url).port), SUBDOMAIN);
  await sendThroughTunnel();
  await prepareMail();
  await prepareMessages();
  await subscribe();
});

after(async () => {
  subscription.abort();
  await tunnel?.close();
  local?.close();
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

/** Sends a mail, whose HTML the console of the platform shows in a frame. */
async function prepareMail(): Promise<void> {
  const mail = { to: "eve@example.org", subject: HOSTILE, text: HOSTILE, html: "<p>the rest</p>" };
  await platform.callService(platform.notify, "PLATFORM_NOTIFY_TOKEN", "/send", mail);
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
  await checkCovered(console);
  await poison(t, console);
  for (const path of TRAFFIC_SCREENS) await checkScreen(console, path);
  const { tunnels } = (await platform.callService(platform.tunnel, platform.admin, "/tunnels")) as {
    tunnels: { id: string; subdomain: string }[];
  };
  const { id } = tunnels.find(({ subdomain }) => subdomain === SUBDOMAIN)!;
  const base = `/tunnels/${id}`;
  await checkScreen(console, `${base}/requests`);
  // A request that arrives while the list is shown, and none of its rows is read.
  await goTo(console, `${base}/requests`);
  const rows = page.locator("main [data-row]:visible");
  const before = await rows.count();
  await sendThroughTunnel();
  await rows.nth(before).waitFor();
  await checkHarmless(console, "a live request");
  await goTo(console, `${base}/shares`);
  await page.getByRole("button", { name: "Share…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
  await page.getByRole("dialog").locator("code").waitFor();
  // The list shows only times.
  await checkHarmless(console, "a new share link");
  // Until then leaving the page asks.
  await page.getByRole("dialog").getByRole("button", { name: "I have kept it" }).click();
  await stopPoison(page);
  await goTo(console, "/mail/inbox");
  await page.frameLocator("iframe.mail-frame").getByText("the rest").waitFor();
});
