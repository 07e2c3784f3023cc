// The specification of the service: shapes of its endpoints, configuration, metrics, spans; and the ledger SPEC.md.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { loadConfig } from "@platform/kernel/config";
import { waitFor } from "@platform/testing/wait";
import { notifyDefinition } from "../../src/config.ts";
import { openSmtp } from "../smtp-client.ts";
import { startStage, type Stage } from "../stage.ts";

const ENDPOINTS = [
  "POST /api/v1/send",
  "POST /api/v1/send/template",
  "POST /api/v1/templates",
  "GET /api/v1/templates/{name}",
  "GET /api/v1/suppression",
  "POST /api/v1/inbound/rules",
  "GET /api/v1/inbound/rules",
  "GET /api/v1/dmarc/report",
  "GET /healthz",
];
const METRICS = [
  "platform_notify_sent_total",
  "platform_notify_bounces_total",
  "platform_notify_suppressed_total",
  "platform_notify_delivery_latency_ms",
  "platform_notify_templates_active",
  "platform_notify_inbound_routed_total",
];
const SPANS = [
  "notify.send",
  "notify.template.render",
  "notify.suppression.check",
  "notify.dmarc.validate",
  "notify.inbound.route",
];
/** Variable, key, a value, and the value in the configuration. */
const VARIABLES: readonly [variable: string, key: string, text: string, value: unknown][] = [
  ["PLATFORM_NOTIFY_PORT", "port", "9094", 9094],
  ["PLATFORM_NOTIFY_SMTP_HOST", "smtp.host", "relay.example", "relay.example"],
  ["PLATFORM_NOTIFY_SMTP_PORT", "smtp.port", "2525", 2525],
  ["PLATFORM_NOTIFY_SMTP_USER", "smtp.user", "ada", "ada"],
  ["PLATFORM_NOTIFY_SMTP_PASS", "smtp.pass", "secret", "secret"],
  ["PLATFORM_NOTIFY_FROM_DOMAIN", "from_domain", "shop.example", "shop.example"],
  ["PLATFORM_NOTIFY_INBOUND_PORT", "inbound_port", "2500", 2500],
  ["PLATFORM_NOTIFY_DMARC_ENABLED", "dmarc_enabled", "false", false],
  [
    "PLATFORM_NOTIFY_OTEL_ENDPOINT",
    "otel_endpoint",
    "http://collector.example:4318",
    "http://collector.example:4318",
  ],
];
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const folder = fileURLToPath(new URL("../", import.meta.url));
const ledger = readFileSync(`${folder}../SPEC.md`, "utf8");

interface Span {
  name: string;
  traceId: string;
}

describe("a running service", () => {
  const spans: Span[] = [];
  let stage: Stage;
  const collector = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      const { resourceSpans } = JSON.parse(body) as {
        resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
      };
      spans.push(...resourceSpans.flatMap((one) => one.scopeSpans.flatMap((two) => two.spans)));
      response.setHeader("content-type", "application/json").end("{}");
    });
  });
  before(async () => {
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
    const { port } = collector.address() as AddressInfo;
    stage = await startStage({
      from_domain: "shop.example",
      inbound_port: 0,
      inbound_host: "127.0.0.1",
      allow_private_targets: true,
      dns_servers: ["127.0.0.1:1"],
      otel_endpoint: `http://127.0.0.1:${port}`,
    });
  });
  after(async () => {
    await stage.close();
    collector.closeAllConnections();
    collector.close();
  });

  test("send requests with all fields get the documented answer", async () => {
    const { status, body } = await stage.call("POST", "/api/v1/send", {
      to: "ada@example.org",
      from: "shop@shop.example",
      subject: "Hello",
      html: "<p>Hello</p>",
      text: "Hello",
      cc: ["bob@example.org"],
      attachments: [{ filename: "a.txt", content: "SGk=", content_type: "text/plain" }],
    });
    assert.equal(status, 200);
    assert.equal(body.status, "sent");
    assert.match(body.message_id, /^[0-9a-f-]{36}$/);
    assert.match(body.delivered_at, ISO_TIME);
  });

  test("templates are created, updated, read and sent as documented", async () => {
    const template = {
      name: "order",
      subject: "Order {{ order.id }}",
      html: "{% if order.paid %}Thank you, {{ user.name }}{% endif %}",
    };
    for (let count = 0; count < 2; count += 1) {
      const { status, body } = await stage.call("POST", "/api/v1/templates", template);
      assert.equal(status, 201);
      assert.equal(body.status, "created");
      assert.equal(body.name, "order");
    }
    const { body: stored } = await stage.call("GET", "/api/v1/templates/order");
    assert.equal(stored.subject, template.subject);
    assert.equal(stored.html, template.html);
    const { status, body } = await stage.call("POST", "/api/v1/send/template", {
      template: "order",
      to: "ada@example.org",
      variables: { order: { id: 7, paid: true }, user: { name: "Ada" } },
    });
    assert.equal(status, 200);
    assert.equal(body.status, "sent");
    assert.equal(body.template, "order");
    const mail = await stage.call("GET", `/api/v1/inbox/${body.message_id}`);
    assert.equal(mail.body.subject, "Order 7");
    assert.equal(mail.body.html.trim(), "Thank you, Ada");
  });

  test("the suppression list, inbound rules, the DMARC report and health have the documented form", async () => {
    await stage.call("POST", "/api/v1/suppression", {
      email: "x@example.org",
      reason: "hard_bounce",
    });
    const { body: list } = await stage.call("GET", "/api/v1/suppression");
    const [entry] = list.addresses;
    assert.equal(entry.email, "x@example.org");
    assert.equal(entry.reason, "hard_bounce");
    assert.match(entry.suppressed_at, ISO_TIME);
    const rule = {
      name: "support",
      match: { to_pattern: "support@shop.example" },
      forward_to: "http://127.0.0.1:1/",
      priority: 10,
    };
    const created = await stage.call("POST", "/api/v1/inbound/rules", rule);
    assert.equal(created.status, 201);
    assert.equal(created.body.status, "created");
    const { body: rules } = await stage.call("GET", "/api/v1/inbound/rules");
    const { rule_id, name, match, forward_to, priority } = rules.rules[0];
    assert.equal(rule_id, created.body.rule_id);
    assert.deepEqual({ name, match, forward_to, priority }, rule);
    const { body: report } = await stage.call("GET", "/api/v1/dmarc/report?period=2026-11");
    const { period, total_messages, aligned, failed_spf, failed_dkim } = report;
    assert.deepEqual(
      [period, total_messages, aligned, failed_spf, failed_dkim],
      ["2026-11", 0, 0, 0, 0],
    );
    const { body: health } = await stage.call("GET", "/healthz");
    assert.deepEqual(health, { status: "UP", service: "notify", version: "1.0.0" });
  });

  test("all documented metrics and spans are reported", async () => {
    const smtp = await openSmtp(stage.smtpPort);
    const content = "From: a@sender.example\r\nSubject: Hi\r\n\r\nHi";
    assert.match(await smtp.mail("a@sender.example", ["support@shop.example"], content), /^250/);
    smtp.close();
    const { text } = await stage.call("GET", "/metrics");
    for (const name of METRICS) assert.match(text, new RegExp(`^# TYPE ${name} `, "m"), name);
    assert.match(text, /^platform_notify_inbound_routed_total 1$/m);
    await waitFor(() => {
      const names = new Set(spans.map(({ name }) => name));
      return SPANS.every((name) => names.has(name));
    });
    const render = spans.find(({ name }) => name === "notify.template.render")!;
    const trace = spans.filter(({ traceId }) => traceId === render.traceId);
    const names = trace.map(({ name }) => name);
    for (const name of ["notify.send", "notify.suppression.check"]) {
      assert.ok(names.includes(name), `${name} has the trace of the request`);
    }
  });

  test("the ledger lists every operation of the API", async () => {
    const { body } = await stage.call("GET", "/api/docs/openapi.json");
    const paths = Object.keys(body.paths).filter((path) => !/^\/(?:api\/docs|ui)/.test(path));
    const missing = paths.filter((path) => !ledger.includes(`${path}\``));
    assert.deepEqual(missing, []);
  });
});

describe("configuration", () => {
  test("every documented variable and YAML key sets its value", () => {
    const env = Object.fromEntries(VARIABLES.map(([variable, , text]) => [variable, text]));
    const lines = VARIABLES.map(([, key, text]) => [key, text] as const);
    const nested = lines.filter(([key]) => key.startsWith("smtp."));
    const yaml = [
      ...lines.filter(([key]) => !key.includes(".")).map(([key, text]) => `${key}: ${text}`),
      "smtp:",
      ...nested.map(([key, text]) => `  ${key.slice("smtp.".length)}: ${text}`),
    ].join("\n");
    for (const sources of [
      { argv: [], env },
      { argv: ["--config", "notify.yaml"], env: {}, readFile: () => yaml },
    ]) {
      const loaded = loadConfig(notifyDefinition, sources);
      assert.equal(loaded.kind, "run");
      const config = (loaded as { config: Record<string, unknown> }).config;
      for (const [, key, , value] of VARIABLES) assert.deepEqual(config[key], value, key);
    }
  });

  test("defaults and the flag --port are as documented", () => {
    const load = (argv: string[]) =>
      (loadConfig(notifyDefinition, { argv, env: {} }) as { config: Record<string, unknown> })
        .config;
    const defaults = load([]);
    assert.equal(defaults["port"], 8094);
    assert.equal(defaults["smtp.port"], 587);
    assert.equal(defaults["dmarc_enabled"], true);
    for (const key of ["smtp.host", "smtp.user", "smtp.pass", "from_domain", "inbound_port"]) {
      assert.equal(defaults[key], undefined, key);
    }
    assert.equal(load(["--port", "9094"])["port"], 9094);
  });
});

describe("the ledger SPEC.md", () => {
  const rows = ledger
    .split("\n")
    .filter((line) => /^\| [^|]*`/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split(" | ")
        .map((cell) => cell.trim()),
    );

  test("every test that it names exists", () => {
    let count = 0;
    for (const [subject = "", named = ""] of rows) {
      for (const entry of named.split("<br>")) {
        const [, file = "", title = ""] = /^`([\w/.-]+)`: (.+)$/.exec(entry) ?? [];
        const path = /^(?:tests|services|packages)\//.test(file)
          ? `${folder}../../../${file}`
          : folder + file;
        assert.ok(file !== "" && existsSync(path), `${subject}: ${entry}`);
        const text = readFileSync(path, "utf8");
        assert.ok(
          text.includes(`"${title}"`) || text.includes(`\`${title}\``),
          `${subject}: ${entry}`,
        );
        count += 1;
      }
    }
    assert.ok(count > 90, `${count} tests are named`);
  });

  test("every endpoint, variable, metric and span of the specification has a row", () => {
    const subjects = rows.map(([subject]) => subject).join("\n");
    const variables = VARIABLES.map(([variable]) => variable);
    for (const name of [...ENDPOINTS, ...METRICS, ...SPANS, ...variables]) {
      assert.ok(subjects.includes(`\`${name}\``), name);
    }
  });
});
