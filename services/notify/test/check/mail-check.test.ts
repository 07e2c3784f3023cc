// Checks of mails: authentication against a DNS server of the test, form and content.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { readHtmlFacts } from "../../src/check/html-facts.ts";
import { renderView } from "../../src/inbox/view.ts";
import { publish } from "../dkim.ts";
import { startDnsServer, type DnsServer } from "../dns-server.ts";
import { startStage, type Stage } from "../stage.ts";

const OPEN: { close(): Promise<void> }[] = [];
after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

interface Check {
  id: string;
  status: string;
  code: string;
  params: Record<string, string | number>;
  detail: string;
}

async function start(settings: object = {}): Promise<{ stage: Stage; dns: DnsServer }> {
  const dns = await startDnsServer({});
  const stage = await startStage({
    dns_servers: [dns.address],
    from_domain: "shop.example",
    ...settings,
  });
  OPEN.push(dns, stage);
  return { stage, dns };
}

async function check(stage: Stage, mail: object): Promise<Record<string, Check>> {
  const sent = await stage.call("POST", "/api/v1/send", {
    to: "ada@example.org",
    from: "a@shop.example",
    subject: "Hello",
    ...mail,
  });
  assert.equal(sent.status, 200, sent.text);
  const { status, body, text } = await stage.call(
    "GET",
    `/api/v1/messages/${sent.body.message_id}/checks`,
  );
  assert.equal(status, 200, text);
  return Object.fromEntries(body.checks.map((one: Check) => [one.id, one]));
}

const statusesOf = (checks: Record<string, Check>, ...ids: string[]): (string | undefined)[] =>
  ids.map((id) => checks[id]?.status);

test("SPF, DKIM and DMARC follow from the records of the domain", async () => {
  const { stage, dns } = await start();
  const mail = { text: "Hello" };
  const bare = await check(stage, mail);
  assert.deepEqual(statusesOf(bare, "spf", "dkim", "dmarc"), ["warning", "warning", "warning"]);
  assert.match(bare["dkim"]!.detail, /no active key/);
  assert.deepEqual(
    [bare["dkim"]!.code, bare["dkim"]!.params],
    ["dkim_missing", { domain: "shop.example" }],
  );

  const { body } = await stage.call("GET", "/api/v1/domains/shop.example");
  publish(dns, body.records);
  await stage.call("GET", "/api/v1/domains/shop.example");
  stage.advance(61_000);
  const good = await check(stage, mail);
  assert.deepEqual(statusesOf(good, "spf", "dkim", "dmarc"), ["ok", "ok", "ok"]);
  assert.match(good["dmarc"]!.detail, /Aligned by DKIM; p=none of shop\.example/);

  const dkimName = body.records.find(({ purpose }: { purpose: string }) => purpose === "dkim").name;
  dns.zone["shop.example"] = { TXT: ["v=spf1 +all"] };
  dns.zone["_dmarc.shop.example"] = { TXT: ["v=DMARC1; p=reject"] };
  delete dns.zone[dkimName];
  stage.advance(61_000);
  const bad = await check(stage, mail);
  assert.deepEqual(statusesOf(bad, "spf", "dkim", "dmarc"), ["problem", "problem", "warning"]);
  assert.match(bad["dmarc"]!.detail, /only if the SPF record/);
});

test("a DNS server that does not answer gives `unknown` within the budget", async () => {
  const { stage, dns } = await start();
  dns.isSilent = true;
  const startedMs = performance.now();
  const checks = await check(stage, { text: "Hello" });
  assert.ok(performance.now() - startedMs < 20_000);
  assert.equal(checks["spf"]!.status, "unknown");
  assert.notEqual(checks["dmarc"]!.status, "ok");
});

test("mail of localhost cannot be checked and says so", async () => {
  const { stage, dns } = await start({ from_domain: undefined });
  const checks = await check(stage, { text: "Hello", from: undefined });
  assert.deepEqual(statusesOf(checks, "spf", "dkim", "dmarc"), ["unknown", "unknown", "unknown"]);
  assert.match(checks["spf"]!.detail, /from_domain/);
  assert.deepEqual(dns.queries, []);
});

test("form and content are checked, and nothing is fetched", async () => {
  const { stage, dns } = await start();
  const bad = await check(stage, {
    subject: "x".repeat(100),
    html: `<base href="http://evil.example/"><img src="http://tracker.example/a.png">
      <a href="java\tscript:alert(1)">a</a><a href="http://shop.example">b</a><form action="/x"></form>
      <svg onload="alert(1)"></svg><meta http-equiv="refresh" content="0">{{ first_name }}`,
  });
  assert.deepEqual(
    statusesOf(bad, "subject", "text", "images", "links", "active_content", "variables"),
    ["warning", "warning", "warning", "problem", "warning", "warning"],
  );
  assert.match(bad["active_content"]!.detail, /<base>, <form>, onload, <meta refresh>/);
  assert.match(bad["variables"]!.detail, /\{\{ first_name \}\}/);
  const good = await check(stage, {
    text: "Hello",
    html: '<img src="cid:logo" alt="Logo"><a href="https://shop.example">Shop</a>',
  });
  assert.deepEqual(
    Object.values(good)
      .filter(({ status }) => status !== "ok")
      .map(({ id }) => id),
    ["spf", "dkim", "dmarc"],
  );
  assert.ok(
    dns.queries.every((query) => /shop\.example$|^TXT _dmarc\.example$/.test(query)),
    dns.queries.join(),
  );
  assert.equal(
    dns.queries.some((query) => /tracker|evil/.test(query)),
    false,
  );
});

test("the size, bulk mail and empty variables are judged", async () => {
  const { stage } = await start();
  const large = await check(stage, { text: "x", html: `<p>${"word ".repeat(30_000)}</p>` });
  assert.equal(large["size"]!.status, "warning");
  assert.match(large["size"]!.detail, /Gmail/);
  const bulk = await check(stage, { text: "x", stream: "bulk" });
  assert.equal(bulk["unsubscribe"]!.status, "ok");
  assert.match(bulk["unsubscribe"]!.detail, /8058/);

  const template = { name: "hi", subject: "Hi", text: "Hi {{ name }}, {{ order.id }}" };
  await stage.call("POST", "/api/v1/templates", template);
  const sent = await stage.call("POST", "/api/v1/send/template", {
    template: "hi",
    to: "ada@example.org",
    variables: { name: "Ada" },
  });
  const path = `/api/v1/messages/${sent.body.message_id}`;
  const { body } = await stage.call("GET", `${path}/checks`);
  const found = body.checks.find(({ id }: Check) => id === "variables");
  assert.equal(found.status, "warning");
  assert.match(found.detail, /order\.id is missing/);
  const content = await stage.call("GET", `${path}/content`);
  assert.deepEqual(content.body.variables, { name: "Ada" });
});

test("a large mail is parsed on threads: the service answers meanwhile, and the load is bounded", async () => {
  const { stage } = await start();
  const html = `<p>${"word <b>bold</b> ".repeat(120_000)}</p>`;
  const mail = { to: "ada@example.org", from: "a@shop.example", text: "x", html };
  const sent = await stage.call("POST", "/api/v1/send", mail);
  const path = `/api/v1/messages/${sent.body.message_id}`;
  const head = "Content-Type: text/html\r\nContent-Transfer-Encoding: 8bit\r\n\r\n";
  const content = Buffer.from(head + html);
  // The service runs in this process: these take all its places, at once.
  let open = 18;
  const views = Array.from({ length: open }, async () => {
    const view = await renderView(content);
    open -= 1;
    return view;
  });
  await assert.rejects(renderView(content), { code: "overloaded" });
  const refused = await stage.call("GET", `${path}/html`);
  assert.deepEqual([refused.status, refused.body.code], [503, "overloaded"]);
  assert.equal((await stage.call("GET", "/healthz")).status, 200);
  assert.ok(open > 0, "health answers before all mails are parsed");
  for (const view of await Promise.all(views)) assert.ok(view.length > 1_500_000);
  const read = await stage.call("GET", `${path}/html`);
  assert.equal(read.status, 200);
  assert.ok(read.text.length > 1_500_000);
  assert.equal((await stage.call("GET", `${path}/checks`)).status, 200);
});

test("hostile HTML of 5 MB is read in linear time", () => {
  for (const piece of ["<", "<a ", '<a href="', "<!--", "<img a='", "<a =\"'", "<a\n".repeat(3)]) {
    const html = piece.repeat(Math.floor((5 * 1024 * 1024) / piece.length));
    const startedMs = performance.now();
    const facts = readHtmlFacts(html);
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs < 30_000, `${piece}: ${tookMs} ms`);
    assert.equal(facts.isCut, true);
  }
  const facts = readHtmlFacts(
    `<img alt='a > b' src=//x.example/a><IMG SRC="HTTPS://x/"><a href="#">`,
  );
  assert.deepEqual(
    [facts.images, facts.imagesWithoutAlt, facts.remoteImages, facts.emptyLinks],
    [2, 1, 2, 1],
  );
});
