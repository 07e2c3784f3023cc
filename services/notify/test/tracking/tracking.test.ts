// Open and click tracking: rewriting, events, automatic requests, forged links.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import PostalMime from "postal-mime";
import { isAutomatic, type TrackedRequest } from "../../src/tracking/automatic.ts";
import { SignedLinks } from "../../src/link/signed-links.ts";
import { addTracking } from "../../src/tracking/rewrite.ts";
import { startHookServer } from "../receiver.ts";
import { startRelayedStage } from "../relayed-stage.ts";
import { startSink, type Sink } from "../sink.ts";
import { STAGE_KINDS, startStageOn, type Stage } from "../stage.ts";

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const HTML = `<html><body><h1>Hi</h1>
<a class="x" href="https://shop.example/a?x=1&amp;y=2" title='1 > 0'>A</a>
<A HREF='http://shop.example/b'>B</A>
<a href="mailto:help@shop.example">C</a> <a href="#top">D</a> <a data-track="off" href="https://shop.example/off">E</a>
</body></html>`;
const MAIL = { to: "ada@example.org", subject: "Hello", html: HTML };
const OPEN: { close(): Promise<void> }[] = [];

after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

async function readHtml(sink: Sink): Promise<string> {
  return (await PostalMime.parse(sink.accepted.at(-1)!.data)).html!;
}

/** Returns the paths of tracked links, at the service itself. */
function pathsIn(html: string, purpose: "click" | "open"): string[] {
  const links = html.matchAll(new RegExp(`"https://mail\\.test/notify(/${purpose}/[^"]+)"`, "g"));
  return Array.from(links, ([, path]) => path!);
}

async function visit(
  stage: Stage,
  path: string,
  headers: Record<string, string> = { "User-Agent": BROWSER },
  method = "GET",
): Promise<Response> {
  return fetch(stage.url + path, { method, headers, redirect: "manual" });
}

async function listEvents(stage: Stage, id: string): Promise<{ type: string; detail?: string }[]> {
  const { body } = await stage.call("GET", `/api/v1/messages/${id}`);
  return body.events.filter(({ type }: { type: string }) => /opened|clicked/.test(type));
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`events on ${kind}`, { skip: skip ?? false }, () => {
    test("opens and clicks are events and webhooks, once per link; scanners are not", async () => {
      const sink = await startSink();
      const hooks = await startHookServer();
      const stage = await startStageOn({
        ...(await prepare()),
        "smtp.host": "127.0.0.1",
        "smtp.port": sink.port,
        from_domain: "shop.example",
        allow_private_targets: true,
      });
      OPEN.push(sink, hooks, stage);
      await stage.call("POST", "/api/v1/webhooks", {
        url: hooks.url,
        events: ["message.opened", "message.clicked"],
      });
      const request = { ...MAIL, track_opens: true, track_clicks: true, tags: ["welcome"] };
      const sent = await stage.call("POST", "/api/v1/send", request);
      assert.equal(sent.status, 200, sent.text);
      const id = sent.body.message_id;
      const html = await readHtml(sink);
      const [image] = pathsIn(html, "open");
      const [first, second] = pathsIn(html, "click");
      assert.equal(pathsIn(html, "click").length, 2);

      // A scanner of the receiving gateway follows all links at delivery.
      await visit(stage, image!);
      const scanned = await visit(stage, first!);
      assert.equal(scanned.status, 302);
      stage.advance(60_000);
      await visit(stage, first!, { "User-Agent": "python-requests/2.32" });
      await visit(stage, first!, { "User-Agent": BROWSER, "Sec-Purpose": "prefetch" });
      await visit(stage, image!, { "User-Agent": BROWSER }, "HEAD");
      assert.deepEqual(await listEvents(stage, id), []);

      const [opened] = (await Promise.all(
        Array.from({ length: 20 }, () => visit(stage, image!)),
      )) as [Response];
      assert.equal(opened.headers.get("content-type"), "image/gif");
      assert.equal(opened.headers.get("cache-control"), "no-store");
      const clicked = await visit(stage, first!);
      assert.equal(clicked.headers.get("location"), "https://shop.example/a?x=1&y=2");
      // Faster than a reader.
      await visit(stage, second!);
      await Promise.all(Array.from({ length: 20 }, () => visit(stage, image!)));
      stage.advance(5_000);
      await visit(stage, first!);
      await visit(stage, image!);
      stage.advance(5_000);
      await visit(stage, second!);
      const events = await listEvents(stage, id);
      assert.deepEqual(
        events.map(({ type, detail }) => [type, detail]),
        [
          ["opened", undefined],
          ["clicked", "https://shop.example/a?x=1&y=2"],
          ["clicked", "http://shop.example/b"],
        ],
      );
      await stage.callWebhooks();
      const count = (type: string): number =>
        hooks.requests.filter(({ body }) => body.type === type).length;
      assert.deepEqual([count("message.opened"), count("message.clicked")], [1, 2]);
      const click = hooks.requests.find(({ body }) => body.type === "message.clicked")!;
      assert.equal(click.body.data.recipient, "ada@example.org");
      assert.deepEqual(click.body.data.tags, ["welcome"]);
      const metrics = await stage.call("GET", "/metrics");
      assert.match(
        metrics.text,
        /platform_notify_tracked_total\{type="opened",source="reader"\} 1/,
      );
      assert.match(
        metrics.text,
        /platform_notify_tracked_total\{type="clicked",source="reader"\} 2/,
      );
      assert.match(
        metrics.text,
        /platform_notify_tracked_total\{type="opened",source="automatic"\} 2/,
      );
    });
  });
}

describe("messages", () => {
  test("tracking is off by default, and leaves other links as they are", async () => {
    const { stage, sink } = await startRelayedStage();
    await stage.call("POST", "/api/v1/send", MAIL);
    assert.equal((await readHtml(sink)).trim(), HTML);
    await stage.call("POST", "/api/v1/send", { ...MAIL, track_clicks: true });
    const html = await readHtml(sink);
    for (const same of ['href="mailto:help@shop.example"', 'href="#top"', "title='1 > 0'"]) {
      assert.ok(html.includes(same), same);
    }
    assert.ok(html.includes('<a data-track="off" href="https://shop.example/off">'));
    assert.deepEqual(pathsIn(html, "open"), []);
  });

  test("a stream can be tracked by default; its unsubscribe links stay, and messages may refuse", async () => {
    const { stage, sink } = await startRelayedStage({
      track_opens: ["bulk"],
      track_clicks: ["bulk"],
    });
    await stage.call("POST", "/api/v1/templates", {
      name: "news",
      subject: "News",
      html: '<a href="{{unsubscribe_url}}">stop</a><a href="https://shop.example/">shop</a>',
    });
    const news = { template: "news", to: "ada@example.org", stream: "bulk" };
    await stage.call("POST", "/api/v1/send/template", news);
    const html = await readHtml(sink);
    assert.equal(pathsIn(html, "click").length, 1);
    assert.equal(pathsIn(html, "open").length, 1);
    assert.match(html, /"https:\/\/mail\.test\/notify\/unsubscribe\//);
    const refused = { ...news, track_opens: false, track_clicks: false };
    await stage.call("POST", "/api/v1/send/template", refused);
    assert.doesNotMatch(await readHtml(sink), /\/open\/|\/click\//);
    await stage.call("POST", "/api/v1/send", MAIL);
    assert.doesNotMatch(await readHtml(sink), /\/open\/|\/click\//);
  });

  test("what cannot be tracked is refused with the reason", async () => {
    const { stage } = await startRelayedStage();
    const tracked = { ...MAIL, track_opens: true };
    const wrong: [change: Record<string, unknown>, reason: RegExp][] = [
      [{ to: ["a@x.example", "b@x.example"] }, /one recipient/],
      [{ cc: ["b@x.example"] }, /one recipient/],
      [{ html: undefined, text: "Hello" }, /html/],
      [{ sensitive: true }, /sensitive/],
      [
        { channel: "sms", to: "+4915112345678", html: undefined, subject: undefined, text: "x" },
        /SMS/,
      ],
    ];
    for (const [change, reason] of wrong) {
      const { status, body } = await stage.call("POST", "/api/v1/send", { ...tracked, ...change });
      assert.equal(status, 400, JSON.stringify(change));
      assert.match(body.detail, reason);
    }
    const { stage: hidden } = await startRelayedStage({ public_url: undefined });
    const refused = await hidden.call("POST", "/api/v1/send", tracked);
    assert.equal(refused.status, 422);
    assert.match(refused.body.detail, /public_url/);
  });
});

test("5 MB of repeated and unclosed tags are rewritten in linear time", () => {
  const links = new SignedLinks({ key: Buffer.alloc(32), publicUrl: () => "https://mail.test" });
  const options = { messageId: "m", opens: true, clicks: true, links };
  for (const piece of ["<a ", '<a "', "<a '\"", '<a href="', "</body>", "</body ", "&#1"]) {
    const html = piece.repeat(Math.floor(5_000_000 / piece.length));
    const startedMs = performance.now();
    assert.ok(addTracking(html, options).length > html.length);
    // Quadratic work takes minutes.
    assert.ok(performance.now() - startedMs < 15_000, piece);
  }
});

test("only signed targets are redirected to", async () => {
  const { stage, sink } = await startRelayedStage();
  await stage.call("POST", "/api/v1/send", { ...MAIL, track_opens: true, track_clicks: true });
  const html = await readHtml(sink);
  const [click] = pathsIn(html, "click");
  const [open] = pathsIn(html, "open");
  const [payload = "", proof = ""] = click!.slice("/click/".length).split(".");
  const evil = Buffer.from(payload, "base64url").toString().replace("shop.example", "evil.example");
  const forged = [
    `/click/${Buffer.from(evil).toString("base64url")}.${proof}`,
    `/click/${payload}.${"A".repeat(22)}`,
    `/click/https://evil.example`,
    `/click/${open!.slice("/open/".length)}`,
    `/open/${click!.slice("/click/".length)}`,
    `/unsubscribe/${click!.slice("/click/".length)}`,
  ];
  for (const path of forged) {
    const response = await visit(stage, path);
    assert.equal(response.status, 404, path);
    assert.equal(response.headers.get("location"), null);
  }
  let status = 404;
  for (let count = 0; count < 800 && status === 404; count += 1) {
    status = (await visit(stage, "/click/x")).status;
  }
  assert.equal(status, 429);
  assert.equal((await visit(stage, click!)).status, 302);
});

test("automatic requests are recognized by method, purpose, program and time", () => {
  const check = (headers: Record<string, string>, more: Partial<TrackedRequest> = {}): boolean =>
    isAutomatic({
      method: "GET",
      headers: new Headers({ "User-Agent": BROWSER, ...headers }),
      nowMs: 100_000,
      sentAtMs: 50_000,
      otherClickAtMs: undefined,
      ...more,
    });
  assert.equal(check({}), false);
  assert.equal(check({ "User-Agent": "Mozilla/5.0 (via ggpht.com GoogleImageProxy)" }), false);
  assert.equal(check({ "User-Agent": "" }), true);
  for (const agent of [
    "Googlebot/2.1",
    "Slackbot-LinkExpanding 1.0",
    "curl/8.5",
    "BarracudaCentral",
  ]) {
    assert.equal(check({ "User-Agent": agent }), true, agent);
  }
  assert.equal(check({ Purpose: "prefetch" }), true);
  assert.equal(check({}, { method: "HEAD" }), true);
  assert.equal(check({}, { sentAtMs: undefined }), true);
  assert.equal(check({}, { sentAtMs: 99_000 }), true);
  assert.equal(check({}, { otherClickAtMs: 99_500 }), true);
  assert.equal(check({}, { otherClickAtMs: 90_000 }), false);
});
