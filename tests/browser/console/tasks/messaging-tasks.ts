// Tasks with messages: follow a topic, find the group that lags, requeue dead letters with one patch.
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { HOSTILE, PATIENCE_MS } from "../chromium.ts";
import type { Task } from "./hands.ts";

const TOPIC = "orders.created";
const GROUP = "warehouse";
const PATCH = '[{ "op": "move", "from": "/currency/code", "path": "/currency" }]';

/** Calls messaging as the page does, so that the tenant is that of the session. */
async function call(page: Page, path: string, body?: object): Promise<string> {
  return await page.evaluate(
    async ([wanted, sent]) => {
      const { services } = (await (await fetch("/console/config")).json()) as {
        services: { id: string; base: string }[];
      };
      const base = services.find(({ id }) => id === "pulse")!.base;
      const init = {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(sent),
      };
      const answer = await fetch(`${base}/api/v1${wanted}`, sent === null ? {} : init);
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${wanted}: ${answer.status} ${text}`);
      return text;
    },
    [path, body ?? null] as const,
  );
}

async function publish(page: Page, n: number, country: string): Promise<void> {
  const payload = JSON.stringify({ order_id: n, ship_to: country, note: HOSTILE });
  await call(page, "/publish", { topic: TOPIC, key: HOSTILE, payload });
}

/** Three messages that have died of one cause. */
async function killRefunds(page: Page): Promise<void> {
  for (let n = 1; n <= 3; n += 1) {
    const payload = JSON.stringify({ n, currency: { code: "EUR" }, note: HOSTILE });
    await call(page, "/publish", { topic: "refunds", payload, ttl_ms: 1 });
  }
  const endsMs = performance.now() + PATIENCE_MS;
  while (!(await call(page, "/topics/refunds/dlq/summary")).includes('"count":3')) {
    assert.ok(performance.now() < endsMs, "the messages do not die");
    await call(page, "/tail?topic=refunds&n=10");
  }
}

async function readPatched(page: Page): Promise<void> {
  const { messages } = JSON.parse(await call(page, "/tail?topic=refunds&n=3")) as {
    messages: { payload: string }[];
  };
  assert.equal(messages.length, 3);
  for (const { payload } of messages) assert.equal(JSON.parse(payload).currency, "EUR");
}

/** Publishes until the tail, which begins at the end of the topic, shows a message of its filter, and then only those. */
async function waitForTail(page: Page): Promise<void> {
  const rows = page.locator(".tail-row:visible");
  const wanted = rows.filter({ hasText: '"order_id":91' });
  const endsMs = performance.now() + PATIENCE_MS;
  while ((await wanted.count()) === 0) {
    assert.ok(performance.now() < endsMs, "no message came");
    await publish(page, 91, "AT");
    await page.waitForTimeout(100);
  }
  // The first may have been shown before the filter was read, which removes what does not fit.
  await publish(page, 92, "DE");
  await publish(page, 93, "AT");
  await rows.filter({ hasText: '"order_id":93' }).first().waitFor();
  await rows.filter({ hasText: '"order_id":92' }).first().waitFor({ state: "detached" });
}

/** The tasks. */
export const MESSAGING_TASKS: readonly Task[] = [
  {
    name: "follow a topic, filtered",
    clicks: 2,
    byMouse: async (hand) => {
      const { page } = hand;
      await publish(page, 1, "DE");
      await hand.openArea("Messaging");
      await page.getByRole("link", { name: TOPIC }).click();
      await page.getByRole("grid").waitFor();
      await page.keyboard.press("/");
      await page.keyboard.insertText('ship_to = "AT" and order_id > 90');
      await waitForTail(page);
    },
    byKeyboard: async (hand) => {
      await publish(hand.page, 1, "DE");
      await hand.press("g", "m");
      await hand.moveToRow(hand.page.locator(`main tr[data-row='${TOPIC}']`));
      await hand.press("Enter");
      await hand.page.getByRole("grid").waitFor();
      await hand.press("/");
      await hand.type('ship_to = "AT" and order_id > 90');
      await waitForTail(hand.page);
    },
  },
  {
    name: "which group lags, since when",
    clicks: 2,
    byMouse: async (hand) => {
      await publish(hand.page, 1, "DE");
      await call(hand.page, "/offsets", { group: GROUP, topic: TOPIC, offset: 0 });
      await hand.openArea("Messaging", "Groups");
      await hand.page.locator(`main tr[data-row='${GROUP}']`).waitFor();
    },
    byKeyboard: async (hand) => {
      await publish(hand.page, 1, "DE");
      await call(hand.page, "/offsets", { group: GROUP, topic: TOPIC, offset: 0 });
      await hand.find("groups", "Messaging · Groups");
      await hand.moveToRow(hand.page.locator(`main tr[data-row='${GROUP}']`));
      await hand.press("Enter");
      await hand.page.getByRole("table", { name: "Partitions" }).waitFor();
    },
  },
  {
    name: "requeue dead letters with one patch",
    clicks: 3,
    byMouse: async (hand) => {
      const { page } = hand;
      await killRefunds(page);
      await hand.openArea("Messaging", "Dead letters");
      await page.locator("main tr[data-row]").first().waitFor();
      await page.keyboard.press("e");
      await page.keyboard.insertText(PATCH);
      await page.getByText("Tried on 3 of them").waitFor();
      await page.getByRole("button", { name: "Requeue all 3" }).click();
      await page.getByText("3 messages were requeued").waitFor();
      await readPatched(page);
    },
    byKeyboard: async (hand) => {
      const { page } = hand;
      await killRefunds(page);
      await hand.find("dead", "Messaging · Dead letters");
      await page.locator("main tr[data-row]").first().waitFor();
      await hand.press("e");
      await hand.type(PATCH);
      await page.getByText("Tried on 3 of them").waitFor();
      await hand.tabTo(page.getByRole("button", { name: "Requeue all 3" }));
      await hand.press("Enter");
      await page.getByText("3 messages were requeued").waitFor();
      await readPatched(page);
    },
  },
];
