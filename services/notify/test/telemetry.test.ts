// Spans and metrics of the specification.
import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { startDnsServer } from "./dns-server.ts";
import { startHookServer } from "./receiver.ts";
import { openSmtp } from "./smtp-client.ts";
import { startStage, startStageOn } from "./stage.ts";

interface Span {
  name: string;
  traceId: string;
}

const METRICS = [
  'platform_notify_sent_total{channel="email",status="sent"} 1',
  "platform_notify_suppressed_total 1",
  "platform_notify_delivery_latency_ms_count 1",
  "platform_notify_templates_active 1",
  "platform_notify_inbound_routed_total 1",
];

const spans: Span[] = [];
const collector = createServer((request, response) => {
  let text = "";
  request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  request.on("end", () => {
    const { resourceSpans } = JSON.parse(text) as {
      resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
    };
    spans.push(
      ...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((one) => one.spans)),
    );
    response.setHeader("content-type", "application/json").end("{}");
  });
});
after(() => {
  collector.closeAllConnections();
  collector.close();
});

test("sending and receiving leave the spans and metrics of the specification", async () => {
  const endpoint = await listenCollector();
  const dns = await startDnsServer({});
  after(() => dns.close());
  const stage = await startStage({
    from_domain: "shop.example",
    inbound_port: 0,
    inbound_host: "127.0.0.1",
    allow_private_targets: true,
    dns_servers: [dns.address],
    otel_endpoint: endpoint,
  });
  await stage.call("POST", "/api/v1/templates", { name: "hello", subject: "Hello", text: "Hi" });
  const to = "ada@example.org";
  const sent = await stage.call("POST", "/api/v1/send/template", { template: "hello", to });
  assert.equal(sent.status, 200, sent.text);
  await stage.call("POST", "/api/v1/suppression", { email: to });
  const refused = await stage.call("POST", "/api/v1/send", { to, subject: "x", text: "x" });
  assert.equal(refused.status, 422, refused.text);
  const rule = await stage.call("POST", "/api/v1/inbound/rules", {
    name: "support",
    match: { to_pattern: "support@shop.example" },
    forward_to: "http://127.0.0.1:1/",
    priority: 0,
  });
  assert.equal(rule.status, 201, rule.text);
  const client = await openSmtp(stage.smtpPort);
  const mail = "From: bob@example.org\r\nSubject: x\r\n\r\nx";
  assert.match(await client.mail("bob@example.org", ["support@shop.example"], mail), /^250 /);
  client.close();
  const { text: metrics } = await stage.call("GET", "/metrics");
  for (const line of METRICS) assert.ok(metrics.includes(`${line}\n`), line);
  assert.match(metrics, /^# TYPE platform_notify_delivery_latency_ms histogram$/m);
  await stage.close();
  const names = new Set(spans.map(({ name }) => name));
  for (const name of ["notify.dmarc.validate", "notify.inbound.route"]) {
    assert.ok(names.has(name), name);
  }
  const render = spans.find(({ name }) => name === "notify.template.render");
  const inTrace = spans.filter(({ traceId }) => traceId === render?.traceId);
  const traced = new Set(inTrace.map(({ name }) => name));
  for (const name of ["notify.send", "notify.suppression.check"]) assert.ok(traced.has(name), name);
});

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = {
  traceparent: `00-${TRACE}-b7ad6b7169203331-01`,
  tracestate: "shop=1,rojo=00f067aa0ba902b7",
};

for (const collected of [true, false]) {
  const form = collected ? "with a collector" : "without a collector";
  test(`webhooks and the SMS gateway continue the trace of the request, ${form}`, async () => {
    const hooks = await startHookServer();
    after(() => hooks.close());
    const stage = await startStage({
      allow_private_targets: true,
      otel_endpoint: collected ? await listenCollector() : undefined,
      "sms.url": `${hooks.url}/sms`,
      "sms.body": '{"to":"{{to}}"}',
    });
    await stage.call("POST", "/api/v1/webhooks", { url: `${hooks.url}/hook` });
    const mail = { to: "ada@example.org", subject: "x", text: "x" };
    await stage.call("POST", "/api/v1/send", mail, CALLER);
    const sms = { channel: "sms", to: "+4915112345678", text: "x" };
    await stage.call("POST", "/api/v1/send", sms, CALLER);
    await waitFor(() => hooks.requests.length >= 3);
    assert.deepEqual(hooks.requests.map(({ path }) => path).toSorted(), ["/hook", "/hook", "/sms"]);
    const spanIds = hooks.requests.map(({ headers }) => readSpan(headers, TRACE));
    assert.equal(new Set(spanIds).size, 3);
    for (const { headers } of hooks.requests) {
      assert.equal(headers["tracestate"], CALLER.tracestate);
    }
    await stage.close();
  });
}

test("a repeated call stays in its trace, also after a restart", async () => {
  const hooks = await startHookServer();
  after(() => hooks.close());
  hooks.status = 500;
  const settings = { allow_private_targets: true };
  const first = await startStage(settings);
  await first.call("POST", "/api/v1/webhooks", { url: hooks.url });
  const mail = { to: "ada@example.org", subject: "x", text: "x" };
  await first.call("POST", "/api/v1/send", mail, CALLER);
  await waitFor(() => hooks.requests.length === 1);
  await first.close();
  const second = await startStageOn({ ...first.settings, ...settings });
  second.advance(120_000);
  await second.callWebhooks();
  await waitFor(() => hooks.requests.length === 2);
  const spanIds = hooks.requests.map(({ headers }) => readSpan(headers, TRACE));
  assert.notEqual(spanIds[0], spanIds[1]);
  await second.close();
});

test("forwards of inbound mail carry a trace, and those of one message the same", async () => {
  const hooks = await startHookServer();
  after(() => hooks.close());
  const dns = await startDnsServer({});
  after(() => dns.close());
  const stage = await startStage({
    from_domain: "shop.example",
    inbound_port: 0,
    inbound_host: "127.0.0.1",
    allow_private_targets: true,
    dns_servers: [dns.address],
  });
  for (const name of ["support", "sales"]) {
    const match = { to_pattern: `${name}@shop.example` };
    const rule = { name, match, forward_to: hooks.url, priority: 0 };
    assert.equal((await stage.call("POST", "/api/v1/inbound/rules", rule)).status, 201);
  }
  const client = await openSmtp(stage.smtpPort);
  const to = ["support@shop.example", "sales@shop.example"];
  await client.mail("bob@example.org", to, "From: bob@example.org\r\nSubject: x\r\n\r\nx");
  await client.mail("bob@example.org", to.slice(1), "From: bob@example.org\r\n\r\ny");
  client.close();
  await waitFor(() => hooks.requests.length === 3);
  const traces = Map.groupBy(hooks.requests, ({ headers }) =>
    String(headers["traceparent"]).slice(3, 35),
  );
  assert.deepEqual(
    [...traces.values()].map((calls) => calls.length).toSorted((a, b) => a - b),
    [1, 2],
  );
  for (const [trace, calls] of traces) {
    for (const { headers } of calls) readSpan(headers, trace);
  }
  await stage.close();
});

// Returns the span of a request in a trace (W3C Trace Context section 3.2).
function readSpan(headers: IncomingHttpHeaders, trace: string): string {
  const found = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(String(headers["traceparent"]));
  assert.equal(found?.[1], trace);
  assert.notEqual(found[2], "b7ad6b7169203331");
  return found[2]!;
}

async function listenCollector(): Promise<string> {
  if (!collector.listening) {
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  }
  return `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
}
