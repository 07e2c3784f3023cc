// Tasks of developers: the mail that a program just sent, and a webhook that is replayed with another body.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before } from "node:test";
import type { Browser, Page } from "playwright-core";
import { chromiumSkip } from "@platform/kernel/testing";
import { ADA, type Platform, startUpstream } from "../../../identity/platform.ts";
import { alone, onPlatform, testTask, type Task } from "./hands.ts";
import { joinInstallation } from "../installation.ts";

let browser: Browser;
let platform: Platform;
let local: Awaited<ReturnType<typeof startUpstream>>;
let tunnel: Awaited<ReturnType<Platform["share"]>>;
let token = "";
/** Bodies that the program behind the tunnel has received. */
const received: string[] = [];
let sent = 0;

before(async () => {
  if (chromiumSkip !== false) return;
  ({ platform, browser } = await joinInstallation());
  token = (await platform.signIn(ADA)).access_token;
  local = await startUpstream((incoming, response) => {
    let body = "";
    incoming.on("data", (piece) => void (body += String(piece)));
    incoming.on("end", () => {
      received.push(body);
      response.end("ok");
    });
  });
  tunnel = await platform.share(Number(new URL(local.url).port), "demo");
});

after(async () => {
  await tunnel?.close();
  local?.close();
});

/** Sends a mail as a program does; returns its subject. */
async function sendMail(): Promise<string> {
  sent += 1;
  const subject = `order ${sent}`;
  const body = JSON.stringify({ to: "eve@example.org", subject, text: "thank you" });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const answer = await platform.ask("/notify/api/v1/send", { method: "POST", headers, body });
  assert.equal(answer.status, 200, answer.text);
  return subject;
}

/** Sends a webhook through the tunnel. */
async function sendWebhook(): Promise<void> {
  const { hostname, port } = tunnel.url;
  await new Promise<void>((resolve, reject) => {
    const outgoing = request(
      {
        agent: false,
        host: "127.0.0.1",
        port,
        method: "POST",
        path: "/webhooks/stripe",
        headers: { host: `${hostname}:${port}`, "content-type": "application/json" },
      },
      (answer) => answer.resume().on("end", resolve),
    );
    outgoing.on("error", reject);
    outgoing.end('{"order_id":"88214"}');
  });
}

async function checkMail(page: Page, subject: string): Promise<void> {
  await page.getByRole("heading", { name: subject, exact: true }).waitFor();
  await page.getByText("thank you").waitFor();
}

/** Replaces the body in the dialog that `e` opens, and replays it. */
async function replayEdited(page: Page): Promise<void> {
  received.length = 0;
  await page.getByRole("button", { name: "Replay" }).first().waitFor();
  await page.keyboard.press("e");
  const field = page.getByRole("dialog").getByLabel("Body");
  await field.waitFor();
  for (let n = 0; n < 10; n += 1) {
    if (await field.evaluate((one) => one === one.ownerDocument.activeElement)) break;
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText('{"order_id":88214}');
  await page.keyboard.press("Control+Enter");
  await page.getByText("Replayed: 200").waitFor();
  assert.deepEqual(received, ['{"order_id":88214}']);
}

const MAIL: Task = {
  name: "the mail that a program just sent",
  clicks: 1,
  byMouse: async (hand) => {
    const subject = await sendMail();
    await hand.openArea("Mail");
    await checkMail(hand.page, subject);
  },
  byKeyboard: async (hand) => {
    const subject = await sendMail();
    await hand.press("g", "e");
    await checkMail(hand.page, subject);
  },
};

const WEBHOOK: Task = {
  name: "replay a webhook, edited",
  clicks: 2,
  byMouse: async (hand) => {
    await sendWebhook();
    await hand.openArea("Tunnels");
    await hand.page.locator("main").getByRole("link", { name: "demo" }).click();
    await replayEdited(hand.page);
  },
  byKeyboard: async (hand) => {
    await sendWebhook();
    await hand.press("g", "t");
    await hand.moveToRow(hand.page.locator("main tr[data-row]").filter({ hasText: "demo" }));
    await hand.press("Enter");
    await replayEdited(hand.page);
    received.length = 0;
    await hand.press("r");
    await hand.page.getByText("Replayed: 200").nth(1).waitFor();
    assert.deepEqual(received, ['{"order_id":88214}']);
  },
};

const open = onPlatform(
  () => browser,
  () => platform,
);
testTask("platform", open, MAIL);
testTask("platform", open, WEBHOOK);
testTask(
  "mail alone",
  alone(
    () => browser,
    () => ({
      url: platform.notify.origin,
      token: platform.readCredential("PLATFORM_NOTIFY_TOKEN"),
    }),
  ),
  MAIL,
);
