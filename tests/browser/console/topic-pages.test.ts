// Schema, transform, settings and refusals of a topic, moved groups and many dead letters, in Chromium.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import {
  startPulseProcess,
  type PulseProcess,
} from "../../../services/pulse/test/fixture/pulse-process.ts";
import { assemble, shorten, trap } from "../../../services/pulse/test/fixture/transforms.ts";
import { chromiumSkip, startChromium } from "@platform/kernel/testing";
import {
  checkPage,
  goTo,
  HOSTILE,
  LOOKS,
  openConsole,
  replaceText,
  takePicture,
  type Look,
} from "./chromium.ts";

const TOKEN = "operator-token";
const TOPIC = "orders";
const LIMIT = 6;

let browser: Browser;
let pulse: PulseProcess;
/** A broker whose topics are never full. */
let roomy: PulseProcess;
const ends: (() => unknown)[] = [];
const folder = mkdtempSync(join(tmpdir(), "console-topics-"));

before(async () => {
  if (chromiumSkip !== false) return;
  browser = await startChromium();
  pulse = await startPulseProcess(
    { after: (end) => void ends.push(end) },
    { PLATFORM_PULSE_TOKEN: TOKEN, PLATFORM_PULSE_BACKPRESSURE_LIMIT: String(LIMIT) },
  );
  roomy = await startPulseProcess(
    { after: (end) => void ends.push(end) },
    {
      PLATFORM_PULSE_TOKEN: TOKEN,
      PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0",
      PLATFORM_PULSE_PUBLISH_RATE: "0",
    },
  );
  for (let n = 1; n <= 4; n += 1) {
    const payload = JSON.stringify({ id: n, note: HOSTILE });
    assert.equal((await pulse.publish({ topic: TOPIC, payload })).status, 200);
  }
});

after(async () => {
  await browser?.close();
  for (const end of ends.reverse()) await end();
  rmSync(folder, { recursive: true, force: true });
});

type Ending = Parameters<typeof openConsole>[0];
const open = (t: Ending, path: string, look: Look = LOOKS[0]) =>
  openConsole(t, browser, { url: pulse.url, token: TOKEN, path, look });
const openRoomy = (t: Ending, path: string) =>
  openConsole(t, browser, { url: roomy.url, token: TOKEN, path, look: LOOKS[0] });

test(
  "a schema is checked against the latest messages while one types, and saved with its difference",
  { skip: chromiumSkip },
  async (t) => {
    const console = await open(t, `/messaging/topics/${TOPIC}/schema`);
    const { page } = console;
    await replaceText(page, '{ "id": "numbr" }');
    await page.getByRole("button", { name: "Line 1" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Review and save…" }).isDisabled(), true);
    await replaceText(page, '{ "id": "string" }');
    await page.getByText("4 of 4 would be refused").waitFor();
    await checkPage(console, "refused by the schema");
    await takePicture(console, "schema-1440");
    await replaceText(page, '{\n  "id": "number"\n}');
    await page.getByText("0 of 4 would be refused").waitFor();
    await page.getByRole("button", { name: "Review and save…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("The latest 4 messages fit.").waitFor();
    await dialog.locator("pre .add", { hasText: '"id": "number"' }).waitFor();
    await checkPage(console, "review of a schema");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Payloads that do not fit are refused.").waitFor();
    assert.deepEqual((await pulse.get(`/api/v1/topics/${TOPIC}/schema`)).body, { id: "number" });
    // Another tab saves while this text is being edited.
    await replaceText(page, '{ "id": "number", "total": "number" }');
    await page.getByText("Breaks: field total").waitFor();
    const theirs = { id: "number", note: "string" };
    assert.equal((await pulse.post(`/api/v1/topics/${TOPIC}/schema`, theirs)).status, 200);
    await page.getByRole("button", { name: "Review and save…" }).click();
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Somebody else changed it.").waitFor();
    await checkPage(console, "a schema that was changed meanwhile");
    assert.deepEqual((await pulse.get(`/api/v1/topics/${TOPIC}/schema`)).body, theirs);
    await page.getByRole("button", { name: "Compare with the new one" }).click();
    await page.getByRole("button", { name: "Review and save…" }).click();
    await dialog.locator("pre .del", { hasText: '"note": "string"' }).waitFor();
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Somebody else").waitFor({ state: "detached" });
    await dialog.waitFor({ state: "detached" });
    await replaceText(page, '{ "id": "number", "note": "string" }');
    await page.getByText("Breaks: field note was not required before").waitFor();
    await page.getByRole("button", { name: "Delete…" }).click();
    await dialog.getByRole("textbox").fill(TOPIC);
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("Any payload is accepted.").waitFor();
  },
);

test(
  "a transform is tried on the latest messages, set and removed",
  { skip: chromiumSkip },
  async (t) => {
    const console = await open(t, `/messaging/topics/${TOPIC}/transform`);
    const { page } = console;
    const choose = async (name: string, bytes: Buffer | string): Promise<void> => {
      const path = join(folder, name);
      writeFileSync(path, bytes);
      await page.locator("input[type=file]").setInputFiles(path);
    };
    await page.getByText("payloads are stored as they are published").waitFor();
    await choose("broken.wasm", "no module");
    await page.getByText("The module is invalid").waitFor();
    const set = page.getByRole("button", { name: "Set the transform" });
    assert.equal(await set.isDisabled(), true);
    await choose("trap.wasm", assemble(trap));
    await page.getByText("4 of 4 failed").waitFor();
    await choose("<img src=x onerror='globalThis.ran=1'>.wasm", assemble(shorten));
    await page.getByText("0 of 4 failed").waitFor();
    await checkPage(console, "tried transform");
    await takePicture(console, "transform-1440");
    await set.press("Enter");
    await page.getByText("SHA-256").waitFor();
    assert.equal((await pulse.get(`/api/v1/topics/${TOPIC}/transform`)).status, 200);
    await page.getByRole("button", { name: "Remove…" }).click();
    await page.getByRole("dialog").getByRole("textbox").fill(TOPIC);
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByText("payloads are stored as they are published").waitFor();
    assert.equal((await pulse.get(`/api/v1/topics/${TOPIC}/transform`)).status, 404);
  },
);

test(
  "a full topic says why it refuses, until a group has read it",
  { skip: chromiumSkip },
  async (t) => {
    // Before the page is open: what comes while its tail is watching counts as read.
    for (let n = 0; n < LIMIT; n += 1) await pulse.publish({ topic: "full", payload: "x" });
    const console = await open(t, "/messaging/topics/full/tail");
    const { page } = console;
    await page
      .getByText(`Publishing is refused: ${LIMIT} messages wait, and ${LIMIT} may.`)
      .waitFor();
    await page.getByText("no one has read them").waitFor();
    await checkPage(console, "refusal");
    await takePicture(console, "refusal-1440");
    await page.keyboard.press("p");
    await page.getByRole("dialog").getByRole("button", { name: "Publish" }).click();
    await page.getByRole("dialog").getByText("waiting messages").waitFor();
    await page.keyboard.press("Escape");
    const reading = await fetch(`${pulse.url}/api/v1/subscribe/full?from=earliest`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    await page.getByText("Publishing is refused").waitFor({ state: "detached" });
    await reading.body?.cancel();
  },
);

test(
  "a group is moved after a preview in numbers, and settings are changed",
  { skip: chromiumSkip },
  async (t) => {
    await pulse.post("/api/v1/offsets", { group: "billing", topic: TOPIC, offset: 3 });
    const console = await open(t, "/messaging/groups?sel=billing");
    const { page } = console;
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Move…" }).click();
    await dialog.locator("select").nth(1).selectOption("start");
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.getByText("3 messages are delivered again, 0 are never delivered.").waitFor();
    await checkPage(console, "preview of a move");
    await takePicture(console, "move-1440");
    const { body: before } = await pulse.get("/api/v1/groups/billing");
    assert.equal(before.offsets[0].committed_offset, 3, "a preview changes nothing");
    await dialog.getByRole("button", { name: "Deliver 3 again" }).press("Enter");
    await page.getByText("billing was moved: 3 again, 0 skipped.").waitFor();
    const { body } = await pulse.get("/api/v1/groups/billing");
    assert.equal(body.offsets[0].committed_offset, 0);

    await goTo(console, `/messaging/topics/${TOPIC}/settings`);
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await dialog.getByLabel("Clean-up").selectOption("compact,delete");
    await dialog.getByLabel("Hours").fill("24");
    const other = { topic: TOPIC, segment_bytes: 5_000_000 };
    assert.equal((await pulse.post("/api/v1/topics/retention", other)).status, 200);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("Changed meanwhile").waitFor();
    await page.keyboard.press("Escape");
    await page.getByText("5.00 MB").waitFor();
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await dialog.getByLabel("Clean-up").selectOption("compact,delete");
    await dialog.getByLabel("Hours").fill("24");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.locator("dd", { hasText: "compact,delete" }).waitFor();
    await checkPage(console, "settings of a topic");
  },
);

test(
  "more dead letters than are counted: the list says so, and a rare cause is requeued",
  { skip: chromiumSkip },
  async (t) => {
    const many = await startPulseProcess(t, {
      PLATFORM_PULSE_TOKEN: TOKEN,
      PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0",
      PLATFORM_PULSE_PUBLISH_RATE: "0",
    });
    await many.publish({ topic: TOPIC, payload: "x" });
    const bury = async (count: number, failure_reason: string): Promise<void> => {
      const messages = Array.from({ length: count }, (_, n) => {
        const letter = {
          message_id: `${failure_reason}-${n}`,
          source_topic: TOPIC,
          original_payload: "{}",
          failure_reason,
          timestamp: 1,
          retry_count: 0,
        };
        return { topic: `${TOPIC}.dlq`, payload: JSON.stringify(letter) };
      });
      const { status } = await many.post("/api/v1/publish/batch", { messages });
      assert.equal(status, 200);
    };
    const kinds = "abcdefghijk".split("");
    for (const kind of kinds) await bury(1_000, `early ${kind}`);
    await bury(2, "late");
    const console = await openConsole(t, browser, {
      url: many.url,
      token: TOKEN,
      path: "/messaging/dead",
    });
    const { page } = console;
    await page.getByText(/Counted: the newest 10.000 of 11.002/).waitFor();
    await checkPage(console, "many dead letters");
    await takePicture(console, "dead-1440");
    await page.getByRole("navigation", { name: "Causes" }).getByText("late").click();
    await page.getByRole("button", { name: "Requeue all 2" }).click();
    await page.getByText("2 messages were requeued to orders.").waitFor();
    const left = await many.get("/api/v1/dlq/causes");
    assert.equal(left.body.total, 11_000);
  },
);

test(
  "a suggestion for dead letters is tried on some, and applied to all of the cause",
  { skip: chromiumSkip },
  async (t) => {
    const schema = { orderId: "number" };
    assert.equal((await roomy.post("/api/v1/topics/bills/schema", schema)).status, 200);
    const messages = Array.from({ length: 12 }, (_, n) => {
      const letter = {
        message_id: `bill-${n}`,
        source_topic: "bills",
        original_payload: JSON.stringify({ orderID: n, note: HOSTILE }),
        failure_reason: "late",
        timestamp: 1,
        retry_count: 0,
      };
      return { topic: "bills.dlq", payload: JSON.stringify(letter) };
    });
    assert.equal((await roomy.post("/api/v1/publish/batch", { messages })).status, 200);
    const console = await openRoomy(t, "/messaging/topics/bills/dead");
    const { page } = console;
    const suggestion = page.getByRole("region", { name: "Suggestion" });
    await suggestion.getByText("Requeue them changed").waitFor();
    await suggestion.getByText("Tried on 12: 12 pass, 0 fail.").waitFor();
    await checkPage(console, "suggestion");
    await takePicture(console, "suggestion-1440");
    await suggestion.getByRole("button", { name: "Try…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.locator("pre .add", { hasText: '"orderId": 0' }).waitFor();
    assert.equal(await dialog.locator("pre .del", { hasText: "orderID" }).count(), 3);
    await checkPage(console, "trial of a suggestion");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    assert.equal((await roomy.get("/api/v1/dlq/causes?topic=bills")).body.total, 12);
    await suggestion.getByRole("button", { name: "Apply…" }).click();
    await dialog.getByText("POST /api/v1/dlq/requeue").waitFor();
    await checkPage(console, "request of a suggestion");
    await dialog.getByRole("button", { name: "Apply" }).click();
    await page.getByText("12 messages were requeued to bills.").waitFor();
    await page.getByText("No dead letters").waitFor();
    const { body } = await roomy.get("/api/v1/topics/bills/messages");
    assert.deepEqual(
      body.messages.map(({ payload }: { payload: string }) => JSON.parse(payload).orderId),
      messages.map((_, n) => n),
    );
  },
);

test(
  "anomalies of a topic: nothing yet, and each kind with its time",
  { skip: chromiumSkip },
  async (t) => {
    const console = await open(t, `/messaging/topics/${TOPIC}/anomalies`);
    const { page } = console;
    await page.getByText("Nothing unusual").waitFor();
    await page.getByText("still learning").waitFor();
    await checkPage(console, "no anomalies");
    // Real ones take hours of samples: their test is that of the service.
    const now = Date.now();
    const one = (kind: string, severity: string, until: number | null, path?: string) => ({
      id: `${kind}-${severity}`,
      kind,
      since: now - 60_000,
      until,
      severity,
      observed: 12,
      expected: 3,
      detail: HOSTILE,
      ...(path === undefined ? {} : { path }),
    });
    await page.route("**/api/**/anomalies", async (route) => {
      const response = await route.fetch();
      const anomalies = [
        one("rate_spike", "high", null),
        one("type_changed", "medium", now - 1_000, "customer.orders[].id"),
      ];
      await route.fulfill({ response, json: { ...(await response.json()), anomalies } });
    });
    await page.reload();
    await page.getByText("More messages than usual").waitFor();
    await page.getByText("A field has another type: customer.orders[].id").waitFor();
    await checkPage(console, "anomalies");
    await takePicture(console, "anomalies-1440");
  },
);

test(
  "events of all topics: by key from a message, by page, and of a type",
  { skip: chromiumSkip },
  async (t) => {
    const publish = async (topic: string, key: string, payload: unknown): Promise<void> => {
      const message = { topic, key, payload: JSON.stringify(payload) };
      assert.equal((await roomy.publish(message)).status, 200);
    };
    await publish("placed", "order 17/ä", { type: "placed", id: 17 });
    await publish("paid", "order 17/ä", { type: "paid", id: 17, note: HOSTILE });
    await publish("paid", "order 18", { type: "paid", id: 18 });
    const console = await openRoomy(t, "/messaging/topics/paid/browse");
    const { page } = console;
    await page.locator("main tr[data-row]", { hasText: "order 17" }).click();
    await page.getByRole("link", { name: "order 17/ä" }).click();
    const rows = page.locator("main tr[data-row]");
    await rows.nth(1).waitFor();
    assert.equal(await rows.count(), 2);
    assert.match(await rows.nth(0).innerText(), /placed/);
    assert.match(await rows.nth(1).innerText(), /paid/);
    await rows.nth(1).click();
    await page.getByRole("complementary", { name: "Details" }).locator("pre").first().waitFor();
    await checkPage(console, "history of a key");
    await takePicture(console, "events-1440");
    await page.getByRole("searchbox", { name: "Key" }).fill("");
    await page.getByRole("searchbox", { name: "Type of event" }).fill("paid");
    await page.keyboard.press("Enter");
    await page.locator("main tr[data-row]", { hasText: "order 18" }).waitFor();
    assert.equal(await rows.count(), 2);
    for (let n = 0; n < 120; n += 1) await publish("many", "k", { n });
    await goTo(console, "/messaging/events?topic=many");
    await rows.nth(5).waitFor();
    await page.getByRole("button", { name: "Next page" }).click();
    await page.locator("main tr[data-row]", { hasText: '"n":119' }).waitFor();
    await goTo(console, "/messaging/events?topic=none.at.all");
    await page.getByText("Not found").or(page.getByText("does not exist")).first().waitFor();
    await checkPage(console, "events of a topic that is not there");
  },
);

test("metadata is asked by SQL, and what is wrong is said", { skip: chromiumSkip }, async (t) => {
  await roomy.publish({ topic: "asked", payload: HOSTILE });
  const console = await openRoomy(t, "/messaging/query");
  const { page } = console;
  const field = page.getByLabel("One SELECT");
  const text = HOSTILE.replaceAll("'", "''");
  await field.fill(`select name, '${text}' as x, null as y from topics where name = 'asked'`);
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText(/^1 rows in/).waitFor();
  await page.locator("main tr[data-row]", { hasText: "asked" }).waitFor();
  await checkPage(console, "rows of a query");
  await takePicture(console, "query-1440");
  await field.fill("delete from topics");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("Only SELECT").waitFor();
  await checkPage(console, "refused query");
  await page.getByRole("button", { name: "Groups that lag" }).click();
  await page.getByText("No rows").waitFor();
  // The page's list of tables is that of the broker.
  const tables = page.locator(".query-tables > div");
  assert.equal(await tables.count(), 10);
  for (const table of await tables.all()) {
    const name = await table.locator("dt").innerText();
    const sql = `select ${await table.locator("dd").innerText()} from ${name}`;
    const { status, body } = await roomy.post("/api/v1/sqlite/query", { sql });
    assert.equal(status, 200, JSON.stringify(body));
    const { body: all } = await roomy.post("/api/v1/sqlite/query", {
      sql: `select * from ${name}`,
    });
    assert.deepEqual(body.columns, all.columns, name);
  }
});

test(
  "object storage for segments: its state, and a store that cannot be used",
  { skip: chromiumSkip },
  async (t) => {
    const console = await openRoomy(t, "/messaging/offload");
    const { page } = console;
    await page.getByText("not set", { exact: true }).waitFor();
    await checkPage(console, "no object storage");
    await page.getByRole("button", { name: "Set…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Address").fill("http://127.0.0.1:9/path");
    await dialog.getByLabel("Bucket").fill("segments");
    await dialog.getByLabel("Access key and secret").fill("key:secret");
    await dialog.getByRole("button", { name: "Try and save" }).click();
    await dialog.getByText("an http or https URL without a path").first().waitFor();
    await checkPage(console, "an address that is none");
    await dialog.getByLabel("Address").fill("http://127.0.0.1:9");
    await dialog.getByRole("button", { name: "Try and save" }).click();
    await dialog.locator(".problem, [role=alert]").first().waitFor();
    assert.equal((await roomy.get("/api/v1/admin/offloader")).body.source, null);
    await takePicture(console, "offload-1440");
  },
);

test("huge and deep payloads do not stop the pages", { skip: chromiumSkip }, async (t) => {
  const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  const huge = JSON.stringify({ text: "x".repeat(900_000) });
  for (const payload of [deep, huge]) {
    assert.equal((await pulse.publish({ topic: "heavy", payload })).status, 200);
  }
  const console = await open(t, "/messaging/topics/heavy/browse");
  const { page } = console;
  const rows = page.locator("main tr[data-row]");
  await rows.nth(1).waitFor();
  for (const index of [0, 1]) {
    await rows.nth(index).click();
    await page.getByRole("complementary", { name: "Details" }).locator("pre").first().waitFor();
    await checkPage(console, `payload ${index}`);
  }
  for (const tab of ["schema", "transform"]) {
    await goTo(console, `/messaging/topics/heavy/${tab}`);
    await page.getByText(tab === "schema" ? "would be refused" : "Another module").waitFor();
    await checkPage(console, `heavy ${tab}`);
  }
});

for (const look of LOOKS) {
  test(`the tabs of a topic: ${look.name}`, { skip: chromiumSkip }, async (t) => {
    const console = await open(t, "/messaging/topics", look);
    const { page } = console;
    for (const path of [
      `/messaging/topics/${TOPIC}/schema`,
      `/messaging/topics/${TOPIC}/transform`,
      `/messaging/topics/${TOPIC}/settings`,
      `/messaging/topics/${TOPIC}/anomalies`,
      "/messaging/topics/full/tail",
      "/messaging/events",
      "/messaging/query",
      "/messaging/offload",
      "/messaging/groups",
      "/messaging/dead",
    ]) {
      await goTo(console, path);
      // The check colours its button.
      if (path.endsWith("/schema")) {
        await page.locator("main button.pri:not([aria-disabled])").waitFor({ state: "attached" });
      }
      if (path.endsWith("/schema")) {
        // On a phone the bar scrolls, and has an edge where it goes on.
        const more = await page.locator(".tabs").getAttribute("data-more");
        assert.match(more!, look.width > 760 ? /^$/ : /start|end/);
      }
      await checkPage(console, `${path} ${look.name}`);
      await takePicture(console, `topic-${path.split("/").at(-1)}-${look.width}`);
    }
  });
}
