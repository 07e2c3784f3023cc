// Spans and metrics of the specification.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { startDnsServer } from "./dns-server.ts";
import { openSmtp } from "./smtp-client.ts";
import { startStage } from "./stage.ts";

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
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  const dns = await startDnsServer({});
  after(() => dns.close());
  const stage = await startStage({
    from_domain: "shop.example",
    inbound_port: 0,
    inbound_host: "127.0.0.1",
    allow_private_targets: true,
    dns_servers: [dns.address],
    otel_endpoint: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
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
