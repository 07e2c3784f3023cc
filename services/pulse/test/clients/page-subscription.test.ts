// Subscriptions of the client for browsers: over lost connections, reloads and tabs nothing is missed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { chromiumSkip } from "@platform/kernel/testing";
import { waitFor } from "@platform/testing/wait";
import type { BrowserContext, Page } from "playwright-core";
import { startPages, type PageStage } from "../fixture/page-client.ts";

let stage: PageStage;
const endings: (() => unknown)[] = [];
before(async () => {
  if (chromiumSkip === false) stage = await startPages({ after: (done) => endings.push(done) });
});
after(async () => {
  for (const done of endings.toReversed()) await done();
});

const skip = { skip: chromiumSkip };

async function openClient(context: BrowserContext, claims = {}): Promise<Page> {
  const page = await stage.openTab(context);
  await page.evaluate(`app.open(${JSON.stringify(stage.token(claims))})`);
  return page;
}

async function openContext(t: { after(done: () => unknown): void }): Promise<BrowserContext> {
  const context = await stage.browser.newContext();
  t.after(() => context.close());
  return context;
}

async function publish(topic: string, ...payloads: string[]): Promise<void> {
  for (const payload of payloads) {
    const { status } = await stage.pulse.post("/api/v1/publish?tenant=main", { topic, payload });
    assert.equal(status, 200);
  }
}

const received = (page: Page, name: string, count: number): Promise<unknown> =>
  page
    .waitForFunction(`app.received["${name}"]?.length >= ${count}`, undefined, { timeout: 60_000 })
    .then(() => page.evaluate(`app.received["${name}"]`));

const subscribers = async (topic: string): Promise<number> => {
  const { body } = await stage.pulse.get("/api/v1/connections?tenant=main");
  return body.connections.filter((each: { subscriptions: string[] }) =>
    each.subscriptions.includes(topic),
  ).length;
};

test("the script is one small module for pages of any origin", async () => {
  if (chromiumSkip !== false) return;
  const url = `${stage.pulse.url}/client/pulse-client.js`;
  const answer = await fetch(url, { headers: { origin: "https://elsewhere.example" } });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("access-control-allow-origin"), "*");
  assert.equal(answer.headers.get("content-type"), "text/javascript; charset=utf-8");
  const etag = answer.headers.get("etag")!;
  const again = await fetch(url, { headers: { "if-none-match": etag } });
  assert.equal(again.status, 304);
  const text = await answer.text();
  assert.doesNotMatch(text, /\b(?:import|require)\s*\(|^import /m);
  const { request } = await import("node:http");
  const packed = await new Promise<Buffer>((resolve, reject) => {
    request(url, { headers: { "accept-encoding": "gzip" } }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => resolve(Buffer.concat(parts)));
    })
      .on("error", reject)
      .end();
  });
  assert.equal(gunzipSync(packed).toString(), text);
  assert.ok(packed.length <= 10 * 1_024, `${packed.length} bytes`);
});

test(
  "a subscription goes on over lost connections, from before its first message",
  skip,
  async (t) => {
    const context = await openContext(t);
    const page = await openClient(context);
    await page.evaluate("void app.follow('own', 'streams', { from: 'latest' })");
    await waitFor(async () => (await subscribers("streams")) === 1, "the subscription");
    stage.line.cut();
    await waitFor(async () => (await subscribers("streams")) === 0, "the end of the connection");
    await publish("streams", "1", "2");
    stage.line.mend();
    assert.deepEqual(await received(page, "own", 2), ["1", "2"]);
    stage.line.cut();
    stage.line.mend();
    await publish("streams", "3");
    assert.deepEqual(await received(page, "own", 3), ["1", "2", "3"]);
  },
);

test("a named subscription goes on where the page before it ended", skip, async (t) => {
  const context = await openContext(t);
  const page = await openClient(context);
  await publish("resumed", "1", "2", "3", "4");
  const options = "{ resume: 'page', from: 'earliest' }";
  // The second message was taken, but the third never asked for.
  assert.deepEqual(await page.evaluate(`app.follow('a', 'resumed', ${options}, 2)`), ["1", "2"]);
  await page.close();
  const next = await openClient(context);
  await next.evaluate(`void app.follow('b', 'resumed', ${options})`);
  assert.deepEqual(await received(next, "b", 3), ["2", "3", "4"]);
});

test("tabs share one stream of a topic, and the next tab continues it", skip, async (t) => {
  const context = await openContext(t);
  const pages = await Promise.all(Array.from({ length: 4 }, () => openClient(context)));
  for (const page of pages) {
    await page.evaluate("void app.follow('live', 'shared')");
    await waitFor(async () => (await subscribers("shared")) === 1, "the stream");
  }
  await publish("shared", "1", "2");
  for (const page of pages) assert.deepEqual(await received(page, "live", 2), ["1", "2"]);
  assert.equal(await subscribers("shared"), 1);
  const closing = pages.shift()!.close();
  await publish("shared", "3", "4", "5");
  await closing;
  for (const page of pages) {
    assert.deepEqual(await received(page, "live", 5), ["1", "2", "3", "4", "5"]);
  }
});

test(
  "members of a group share its messages, and one that leaves gives its message back",
  skip,
  async (t) => {
    const context = await openContext(t);
    const page = await openClient(context);
    await publish("work", "1", "2", "3");
    const options = "{ group: 'workers', from: 'earliest', prefetch: 1 }";
    // The third is not acknowledged.
    const taken = await page.evaluate(`app.follow('first', 'work', ${options}, 3)`);
    assert.deepEqual(taken, ["1", "2", "3"]);
    await page.evaluate(`void app.follow('second', 'work', ${options})`);
    assert.deepEqual(await received(page, "second", 1), ["3"]);
    stage.line.cut();
    stage.line.mend();
    await publish("work", "4");
    await page.waitForFunction("app.received.second.includes('4')");
  },
);

test(
  "a refusal ends a subscription with the broker's reason; a signal and return end it quietly",
  skip,
  async (t) => {
    const context = await openContext(t);
    const page = await openClient(context, { scope: "pulse:publish" });
    for (const options of ["{}", "{ from: 0 }", "{ group: 'g' }"]) {
      assert.equal(
        await page.evaluate(`app.refusal(() => app.follow('none', 'denied', ${options}))`),
        "forbidden",
        options,
      );
    }
    await page.evaluate(`app.token = ${JSON.stringify(stage.token())}`);
    for (const options of ["", "from: 'latest', ", "group: 'g', "]) {
      const ended = await page.evaluate(`(async () => {
      const stop = new AbortController();
      const following = app.follow('stopped', 'quiet', { ${options}signal: stop.signal });
      setTimeout(() => stop.abort(), 100);
      await following;
      const messages = app.client.subscribe('quiet', { ${options} });
      const next = messages.next();
      setTimeout(() => messages.return(), 100);
      return (await next).done;
    })()`);
      assert.equal(ended, true, options);
    }
    await waitFor(async () => (await subscribers("quiet")) === 0, "no subscriber is left");
  },
);
