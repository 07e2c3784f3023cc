// The queue of the client for browsers: what pages publish arrives once and in order, whatever happens to network and tabs.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromiumSkip } from "@platform/kernel/testing";
import { createRandom } from "@platform/testing/random";
import { waitFor } from "@platform/testing/wait";
import type { BrowserContext, Page, Request } from "playwright-core";
import { startPages, type PageStage } from "../fixture/page-client.ts";

const ROUNDS = Number(process.env["PLATFORM_PULSE_CLIENT_ROUNDS"] ?? 4);
const TABS = Number(process.env["PLATFORM_PULSE_CLIENT_TABS"] ?? 3);

let stage: PageStage;
const endings: (() => unknown)[] = [];
before(async () => {
  if (chromiumSkip === false) stage = await startPages({ after: (done) => endings.push(done) });
});
after(async () => {
  for (const done of endings.toReversed()) await done();
});

const skip = { skip: chromiumSkip };

/** A tab with a client, in a browser profile of its own unless one is given. */
async function openClient(
  t: { after(done: () => unknown): void },
  options: Record<string, unknown> = {},
  context?: BrowserContext,
): Promise<Page> {
  const own = context ?? (await stage.browser.newContext());
  if (context === undefined) t.after(() => own.close());
  const page = await stage.openTab(own);
  await page.evaluate(`app.open(${JSON.stringify(stage.token())}, ${JSON.stringify(options)})`);
  return page;
}

interface Pending {
  message_id: string;
  state: string;
  problem: { status: number };
}

/** Waits for a state of the queue. A page's own wait takes the promise of its state for an answer. */
async function waitForQueue(
  page: Page,
  isWanted: (queue: readonly Pending[]) => boolean,
): Promise<Pending[]> {
  let queue: Pending[] = [];
  return waitFor(
    async () => {
      queue = (await page.evaluate("app.client.pending()")) as Pending[];
      return isWanted(queue) && queue;
    },
    () => JSON.stringify(queue),
  );
}

/**
 * Cuts a browser's requests to the broker, though not those for pages, as `setOffline` does. Returns a function that waits until
 * none is under way: one that has not been cut yet arrives if the cut ends.
 */
async function cut(context: BrowserContext): Promise<() => Promise<unknown>> {
  const underWay = new Set<Request>();
  context.on("request", (request) => void underWay.add(request));
  context.on("requestfailed", (request) => void underWay.delete(request));
  context.on("requestfinished", (request) => void underWay.delete(request));
  await context.route("**/api/**", (route) => route.abort());
  return () => waitFor(() => underWay.size === 0, "no request is under way");
}

async function mend(context: BrowserContext): Promise<void> {
  await context.unroute("**/api/**");
  for (const page of context.pages()) {
    await page.evaluate("dispatchEvent(new Event('online'))");
  }
}

async function arrived(topic: string, payloads: readonly string[]): Promise<void> {
  let seen: string[] = [];
  await waitFor(
    async () => (seen = await stage.read(topic)).length >= payloads.length,
    () => `${topic} has ${JSON.stringify(seen)}`,
  );
  assert.deepEqual(seen, payloads);
}

test(
  "what was published offline outlives the page and is sent when the network is back",
  skip,
  async (t) => {
    const page = await openClient(t);
    const context = page.context();
    await page.evaluate("app.publish('offline', 'first', { n: 2 })");
    await arrived("offline", ["first", '{"n":2}']);
    await context.setOffline(true);
    await page.evaluate("app.publish('offline', 'third', 'fourth')");
    const pending = await page.evaluate("app.client.pending()");
    assert.deepEqual(
      (pending as { topic: string; state: string }[]).map(({ topic, state }) => [topic, state]),
      [
        ["offline", "queued"],
        ["offline", "queued"],
      ],
    );
    await page.close();
    await context.setOffline(false);
    const next = await openClient(t, {}, context);
    await arrived("offline", ["first", '{"n":2}', "third", "fourth"]);
    await waitForQueue(next, ({ length }) => length === 0);
  },
);

test(
  "the acknowledgement has the place, also for a tab that another one sent for",
  skip,
  async (t) => {
    const one = await openClient(t);
    const other = await openClient(t, {}, one.context());
    const places = await Promise.all(
      [one, other].map((page) =>
        page.evaluate(
          "app.client.publish({ topic: 'places', payload: new Uint8Array([0, 255]) }).then(({ sent }) => sent)",
        ),
      ),
    );
    const offsets = (places as { offset: number; duplicate: boolean }[]).map(
      ({ offset }) => offset,
    );
    assert.deepEqual(
      offsets.toSorted((a, b) => a - b),
      [0, 1],
    );
    const { body } = await stage.pulse.get("/api/v1/topics/places/messages?tenant=main");
    assert.deepEqual([body.messages[0].payload, body.messages[0].encoding], ["AP8=", "base64"]);
  },
);

test("an answer that was lost, or is a proxy's own page, stores nothing twice", skip, async (t) => {
  const page = await openClient(t);
  let attempts = 0;
  await page.route("**/api/v1/publish/batch", async (route) => {
    attempts++;
    if (attempts === 1) {
      await route.fetch();
      await route.abort();
    } else if (attempts === 2) {
      await route.fulfill({ status: 200, contentType: "text/html", body: "<h1>Sign in</h1>" });
    } else if (attempts === 3) {
      await route.fulfill({ status: 403, contentType: "text/html", body: "<h1>Blocked</h1>" });
    } else await route.continue();
  });
  const sent = page.evaluate(
    "app.client.publish({ topic: 'lost', payload: 'x' }).then(({ sent }) => sent)",
  );
  const hurry = setInterval(() => void page.evaluate("app.client.retry()").catch(() => 0), 200);
  t.after(() => clearInterval(hurry));
  assert.equal(((await sent) as { duplicate: boolean }).duplicate, true);
  clearInterval(hurry);
  assert.deepEqual(await stage.read("lost"), ["x"]);
  assert.equal(attempts, 4);
});

test(
  "a message that the broker refuses is set aside with the reason, and those beside it go on",
  skip,
  async (t) => {
    const page = await openClient(t);
    const schema = { type: "object", required: ["id"] };
    await stage.pulse.post("/api/v1/topics?tenant=main", { name: "strict" });
    const set = await stage.pulse.post("/api/v1/topics/strict/schema?tenant=main", schema);
    assert.equal(set.status, 200, JSON.stringify(set.body));
    await page.context().setOffline(true);
    await page.evaluate(
      "app.publish('strict', { id: 1 }, { id: 2 }, { name: 'bad' }, { id: 4 }, 'worse', { id: 6 })",
    );
    await page.context().setOffline(false);
    await arrived("strict", ['{"id":1}', '{"id":2}', '{"id":4}', '{"id":6}']);
    // The page notes a refusal after the broker has stored the messages behind it.
    const pending = await waitForQueue(page, (queue) =>
      queue.every(({ state }) => state === "rejected"),
    );
    assert.deepEqual(
      pending.map(({ state, problem }) => [state, problem.status]),
      [
        ["rejected", 422],
        ["rejected", 422],
      ],
    );
    assert.equal(await page.evaluate(`app.client.discard("${pending[0]!.message_id}")`), true);
    await stage.pulse.get("/api/v1/topics/strict/schema?tenant=main", { method: "DELETE" });
    assert.equal(await page.evaluate("app.client.retry()"), 1);
    await arrived("strict", ['{"id":1}', '{"id":2}', '{"id":4}', '{"id":6}', "worse"]);
  },
);

test(
  "a refused token stops the queue until there is another one of the same user",
  skip,
  async (t) => {
    const page = await openClient(t);
    await page.evaluate("app.publish('tokens', 'before')");
    await arrived("tokens", ["before"]);
    await page.evaluate(`app.token = ${JSON.stringify(stage.token({ exp: 1 }))}`);
    await page.evaluate("app.publish('tokens', 'after')");
    await page.waitForFunction("app.client.state === 'auth'");
    // A page that was left open while somebody else signed in.
    await page.evaluate(`app.token = ${JSON.stringify(stage.token({ sub: "other" }))}`);
    await page.evaluate("app.client.retry()");
    await page.waitForFunction("app.states.filter((state) => state === 'auth').length >= 1");
    await page.waitForTimeout(300);
    assert.deepEqual(await stage.read("tokens"), ["before"]);
    await page.evaluate(`app.token = ${JSON.stringify(stage.token())}`);
    await page.evaluate("app.client.retry()");
    await arrived("tokens", ["before", "after"]);
  },
);

test("another user of the browser has a queue of its own; clear ends one", skip, async (t) => {
  const page = await openClient(t, { user: "anna" });
  const settle = await cut(page.context());
  await page.evaluate("app.publish('users', 'anna 1')");
  await page.evaluate("app.client.close()");
  const other = await openClient(t, { user: "bert" }, page.context());
  await other.evaluate("app.publish('users', 'bert 1')");
  const settled = other.evaluate(
    "app.client.publish({ topic: 'users', payload: 'bert 2' }).then(({ sent }) => app.refusal(() => sent))",
  );
  await waitForQueue(other, ({ length }) => length === 2);
  await other.evaluate("app.client.clear()");
  assert.equal(await settled, "cleared");
  await settle();
  await mend(page.context());
  await other.evaluate("app.publish('users', 'bert 3')");
  await arrived("users", ["bert 3"]);
});

test(
  "messages that were read before the queue was cleared are not sent when their token comes",
  skip,
  async (t) => {
    const page = await openClient(t);
    await page.evaluate(`{
    const { token } = app;
    app.asked = 0;
    app.held = Promise.withResolvers();
    app.give = () => app.held.resolve(token);
    Object.defineProperty(app, "token", { get: () => (app.asked++, app.held.promise) });
  }`);
    await page.evaluate("app.publish('cleared', 'before')");
    await page.waitForFunction("app.asked > 0");
    await page.evaluate("app.client.clear()");
    await page.evaluate("app.give()");
    await page.evaluate("app.publish('cleared', 'after')");
    await arrived("cleared", ["after"]);
  },
);

test("the queue has bounds, and keeps old messages no longer than it may", skip, async (t) => {
  const page = await openClient(t, { messagesMax: 2, messageBytesMax: 200, ageMaxMs: 60_000 });
  await cut(page.context());
  const publish = (payload: string) =>
    page.evaluate(
      `app.refusal(() => app.client.publish({ topic: "bounds", payload: "${payload}" }))`,
    );
  assert.equal(await publish("x".repeat(200)), "message_too_large");
  assert.deepEqual(
    [await publish("1"), await publish("2"), await publish("3")],
    ["none", "none", "queue_full"],
  );
  const dropping = await openClient(
    t,
    { messagesMax: 2, whenFull: "drop-oldest", name: "dropping" },
    page.context(),
  );
  const first = dropping.evaluate(
    "app.client.publish({ topic: 'bounds', payload: 'a' }).then(({ sent }) => app.refusal(() => sent))",
  );
  await waitForQueue(dropping, ({ length }) => length === 1);
  await dropping.evaluate("app.publish('bounds', 'b', 'c')");
  assert.equal(await first, "dropped");
  await page.clock.setSystemTime(Date.now() + 120_000);
  await mend(page.context());
  await page.evaluate("app.client.retry()");
  await page.waitForFunction("app.rejected.length === 2");
  assert.deepEqual(await page.evaluate("app.rejected.map(({ problem }) => problem.code)"), [
    "expired",
    "expired",
  ]);
  await arrived("bounds", ["b", "c"]);
});

test(
  "a page that is no secure context takes turns by a lease, and a clock set back does not hold it",
  skip,
  async (t) => {
    const context = await stage.browser.newContext();
    t.after(() => context.close());
    let isOffline = false;
    const open = async (aheadMs: number) => {
      const page = await stage.openTab(context, "http://app.example");
      await page.route("http://app.example/api/**", (route) =>
        isOffline ? route.abort() : route.fallback(),
      );
      await page.clock.setSystemTime(Date.now() + aheadMs);
      assert.equal(await page.evaluate("'locks' in navigator"), false);
      assert.equal(await page.evaluate(`app.open(${JSON.stringify(stage.token())})`), true);
      return page;
    };
    const ahead = await open(3_600_000);
    await ahead.evaluate("app.publish('leases', '1')");
    await arrived("leases", ["1"]);
    isOffline = true;
    await ahead.evaluate("app.publish('leases', '2')");
    await ahead.waitForFunction("app.client.state === 'waiting'");
    // The tab dies with its lease, an hour ahead.
    await ahead.close();
    isOffline = false;
    const page = await open(0);
    await page.evaluate("app.publish('leases', '3')");
    await arrived("leases", ["1", "2", "3"]);
  },
);

test("without IndexedDB the queue works as long as the page", skip, async (t) => {
  const context = await stage.browser.newContext();
  t.after(() => context.close());
  await context.addInitScript("Object.defineProperty(window, 'indexedDB', { value: undefined })");
  const page = await stage.openTab(context);
  assert.equal(await page.evaluate(`app.open(${JSON.stringify(stage.token())})`), false);
  await cut(context);
  await page.evaluate("app.publish('memory', '1', '2')");
  await mend(context);
  await arrived("memory", ["1", "2"]);
});

test(
  `${TABS} tabs, ${ROUNDS} breaks of the network, reloads and closed tabs: each message once, in order per tab`,
  skip,
  async (t) => {
    const context = await stage.browser.newContext();
    t.after(() => context.close());
    const seed = Number(process.env["PLATFORM_PULSE_CLIENT_SEED"] ?? 20_261_130);
    t.diagnostic(`seed ${seed}`);
    const random = createRandom(seed);
    const pages = await Promise.all(Array.from({ length: TABS }, () => openClient(t, {}, context)));
    const counts = Array.from({ length: TABS }, () => 0);
    const publishSome = (tab: number) => {
      const payloads = Array.from({ length: 3 }, () => `${tab}:${counts[tab]!++}`);
      return pages[tab]!.evaluate(`app.publish("tabs", ...${JSON.stringify(payloads)})`);
    };
    for (let round = 0; round < ROUNDS; round++) {
      await (round % 2 === 0 ? cut(context) : mend(context));
      await Promise.all(pages.map((_, tab) => publishSome(tab)));
      const tab = Math.floor(random() * TABS);
      if (random() < 0.5) {
        await pages[tab]!.reload();
        await pages[tab]!.waitForFunction("document.title === 'ready'");
        await pages[tab]!.evaluate(`app.open(${JSON.stringify(stage.token())})`);
      } else {
        await pages[tab]!.close();
        pages[tab] = await openClient(t, {}, context);
      }
    }
    await mend(context);
    const expected = counts.reduce((sum, count) => sum + count, 0);
    await waitFor(async () => (await stage.read("tabs")).length >= expected, "all messages");
    const seen = await stage.read("tabs");
    assert.equal(seen.length, expected);
    for (let tab = 0; tab < TABS; tab++) {
      const own = seen.filter((payload) => payload.startsWith(`${tab}:`));
      assert.deepEqual(
        own,
        Array.from({ length: counts[tab]! }, (_, n) => `${tab}:${n}`),
      );
    }
  },
);
