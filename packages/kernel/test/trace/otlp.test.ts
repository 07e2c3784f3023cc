// The exporter with a real HTTP collector: encoding, batches, retries, limits, drain.
import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createIdSource } from "@platform/kernel/ids";
import { MetricRegistry } from "@platform/kernel/metrics";
import { createManualClock, systemClock } from "@platform/kernel/time";
import {
  createOtlpExporter,
  createSpanCounts,
  createTracer,
  isSampled,
  resolveTracesEndpoint,
  type OtlpExporterOptions,
  type SpanExporter,
  type Tracer,
} from "@platform/kernel/trace";

interface Received {
  url: string;
  headers: IncomingHttpHeaders;
  spans: Record<string, unknown>[];
  body: string;
}
interface Answer {
  status: number;
  headers?: Record<string, string>;
  body?: string;
  delayMs?: number;
}

async function startCollector(
  context: TestContext,
  answers: Answer[] = [],
): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      const parsed = JSON.parse(body) as {
        resourceSpans: { scopeSpans: { spans: Record<string, unknown>[] }[] }[];
      };
      const spans = parsed.resourceSpans[0]!.scopeSpans[0]!.spans;
      received.push({ url: request.url!, headers: request.headers, spans, body });
      const answer = answers.shift() ?? { status: 200, body: "{}" };
      setTimeout(() => {
        response.writeHead(answer.status, answer.headers).end(answer.body ?? "");
      }, answer.delayMs ?? 0).unref();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}

function makeTracer(
  endpoint: string,
  more: Partial<OtlpExporterOptions> = {},
): { tracer: Tracer; metrics: MetricRegistry } {
  const metrics = new MetricRegistry();
  const exporter = createOtlpExporter({
    endpoint,
    resource: { service: "gate", version: "1.0.0" },
    counts: createSpanCounts(metrics),
    delayMs: 10,
    backoffMs: 1,
    ...more,
  });
  return { tracer: createTracer({ ids: createIdSource(), clock: systemClock, exporter }), metrics };
}

async function readCounts(metrics: MetricRegistry): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const text = await metrics.render();
  for (const [, name, reason, value] of text.matchAll(
    /^platform_trace_spans_(exported|dropped)_total(?:\{reason="(\w+)"\})? (\d+)$/gm,
  )) {
    counts[reason ?? name!] = Number(value);
  }
  return counts;
}

test("an ended span reaches the collector in OTLP's JSON encoding", async (context) => {
  const { url, received } = await startCollector(context);
  const clock = createManualClock(1_700_000_000_000.25);
  const metrics = new MetricRegistry();
  const exporter = createOtlpExporter({
    endpoint: url,
    resource: { service: "gate", version: "1.0.0", instance: "a" },
    counts: createSpanCounts(metrics),
    headers: { "X-Api-Key": "k" },
  });
  const tracer = createTracer({ ids: createIdSource(), clock, exporter });
  const parent = {
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    spanId: "00f067aa0ba902b7",
    sampled: true,
    traceState: "v=1",
  };
  const span = tracer.startSpan({ name: "GET", kind: "server", parent, attributes: { a: "x" } });
  span.setName("GET /users/{id}");
  clock.advance(1.5);
  span.setAttribute("http.response.status_code", 500);
  span.setAttribute("ratio", 0.5);
  span.setAttribute("ok", false);
  span.setAttribute("tags", ["p", "q"]);
  span.addEvent("retry", { attempt: 1 });
  clock.setNow(0);
  clock.advance(1);
  span.setStatus("error", "boom");
  span.end();
  span.end();
  await tracer.shutdown(1_000);
  assert.equal(received.length, 1);
  const [request] = received;
  assert.equal(request!.url, "/v1/traces");
  assert.equal(request!.headers["content-type"], "application/json");
  assert.equal(request!.headers["x-api-key"], "k");
  assert.deepEqual(
    (JSON.parse(request!.body) as { resourceSpans: [{ resource: unknown }] }).resourceSpans[0]
      .resource,
    {
      attributes: [
        { key: "service.name", value: { stringValue: "gate" } },
        { key: "service.version", value: { stringValue: "1.0.0" } },
        { key: "telemetry.sdk.name", value: { stringValue: "platform" } },
        { key: "telemetry.sdk.language", value: { stringValue: "nodejs" } },
        { key: "service.instance.id", value: { stringValue: "a" } },
      ],
    },
  );
  assert.deepEqual(request!.spans, [
    {
      traceId: parent.traceId,
      spanId: span.context.spanId,
      parentSpanId: parent.spanId,
      traceState: "v=1",
      flags: 1,
      name: "GET /users/{id}",
      kind: 2,
      startTimeUnixNano: "1700000000000250000",
      endTimeUnixNano: "1700000000002750000",
      attributes: [
        { key: "a", value: { stringValue: "x" } },
        { key: "http.response.status_code", value: { intValue: "500" } },
        { key: "ratio", value: { doubleValue: 0.5 } },
        { key: "ok", value: { boolValue: false } },
        {
          key: "tags",
          value: { arrayValue: { values: [{ stringValue: "p" }, { stringValue: "q" }] } },
        },
      ],
      droppedAttributesCount: 0,
      events: [
        {
          timeUnixNano: "1700000000001750000",
          name: "retry",
          attributes: [{ key: "attempt", value: { intValue: "1" } }],
        },
      ],
      status: { code: 2, message: "boom" },
    },
  ]);
  assert.deepEqual(await readCounts(metrics), { exported: 1 });
});

test("spans are sent in batches, a partly filled one after the delay", async (context) => {
  const { url, received } = await startCollector(context);
  const { tracer } = makeTracer(url, { batchMax: 3, delayMs: 20 });
  for (let n = 0; n < 7; n += 1) tracer.startSpan({ name: `${n}` }).end();
  const deadline = performance.now() + 20_000;
  while (received.length < 3 && performance.now() < deadline) await sleep(5);
  assert.deepEqual(
    received.map((request) => request.spans.map((span) => span["name"])),
    [["0", "1", "2"], ["3", "4", "5"], ["6"]],
  );
  await tracer.shutdown(100);
});

for (const status of [429, 502, 503, 504]) {
  test(`a batch is sent again after status ${status}`, async (context) => {
    const { url, received } = await startCollector(context, [{ status }, { status }]);
    const { tracer, metrics } = makeTracer(url);
    tracer.startSpan({ name: "x" }).end();
    await tracer.shutdown(2_000);
    assert.equal(received.length, 3);
    assert.deepEqual(await readCounts(metrics), { exported: 1 });
  });
}

test("Retry-After is respected", async (context) => {
  const answers = [{ status: 503, headers: { "Retry-After": "1" } }];
  const { url, received } = await startCollector(context, answers);
  const { tracer } = makeTracer(url, { delayMs: 1 });
  const started = performance.now();
  tracer.startSpan({ name: "x" }).end();
  await sleep(300);
  assert.equal(received.length, 1);
  await tracer.shutdown(3_000);
  assert.equal(received.length, 2);
  assert.ok(performance.now() - started >= 990);
});

for (const status of [400, 404, 500, 307]) {
  test(`a batch is not sent again after status ${status}, and its spans are counted as rejected`, async (context) => {
    const headers = { Location: "/elsewhere" };
    const { url, received } = await startCollector(context, [{ status, headers }]);
    const { tracer, metrics } = makeTracer(url);
    tracer.startSpan({ name: "x" }).end();
    await tracer.shutdown(2_000);
    assert.equal(received.length, 1);
    assert.deepEqual(await readCounts(metrics), { exported: 0, rejected: 1 });
  });
}

test("rejected spans of a partial success are counted", async (context) => {
  const body = '{"partialSuccess":{"rejectedSpans":"2","errorMessage":"old"}}';
  const { url } = await startCollector(context, [{ status: 200, body }]);
  const { tracer, metrics } = makeTracer(url);
  for (const name of ["a", "b", "c"]) tracer.startSpan({ name }).end();
  await tracer.shutdown(1_000);
  assert.deepEqual(await readCounts(metrics), { exported: 1, rejected: 2 });
});

test("a full queue drops and counts spans, without throwing or waiting", async (context) => {
  const { url } = await startCollector(context);
  const { tracer, metrics } = makeTracer(url, { queueMax: 5, delayMs: 60_000 });
  for (let n = 0; n < 8; n += 1) tracer.startSpan({ name: "x" }).end();
  await tracer.shutdown(1_000);
  tracer.startSpan({ name: "late" }).end();
  assert.deepEqual(await readCounts(metrics), { exported: 5, queue_full: 3, shutdown: 1 });
});

test("spans are counted as lost after all attempts to reach the collector", async () => {
  const { tracer, metrics } = makeTracer("http://127.0.0.1:1", { attemptsMax: 3 });
  tracer.startSpan({ name: "x" }).end();
  await tracer.shutdown(5_000);
  assert.deepEqual(await readCounts(metrics), { exported: 0, unreachable: 1 });
});

test("a drain ends at its timeout even if the collector hangs", async (context) => {
  const { url } = await startCollector(context, [{ status: 200, delayMs: 60_000 }]);
  const { tracer, metrics } = makeTracer(url);
  tracer.startSpan({ name: "x" }).end();
  const started = performance.now();
  await tracer.shutdown(50);
  assert.ok(performance.now() - started < 30_000);
  assert.deepEqual(await readCounts(metrics), { exported: 0, shutdown: 1 });
});

test("a continued trace keeps its id, sampling decision and state", () => {
  const exported: string[] = [];
  const exporter: SpanExporter = {
    export: (span) => void exported.push(span.name),
    shutdown: async () => {},
  };
  const tracer = createTracer({
    ids: createIdSource(),
    clock: systemClock,
    exporter,
    sampleRatio: 0,
  });
  const parent = { traceId: "a".repeat(32), spanId: "b".repeat(16), traceState: "v=1" };
  const sampled = tracer.startSpan({ name: "yes", parent: { ...parent, sampled: true } });
  const unsampled = tracer.startSpan({ name: "no", parent: { ...parent, sampled: false } });
  const fresh = tracer.startSpan({ name: "fresh" });
  for (const span of [sampled, unsampled, fresh]) span.end();
  assert.deepEqual(exported, ["yes"]);
  assert.equal(sampled.context.traceId, parent.traceId);
  assert.equal(sampled.context.traceState, "v=1");
  assert.notEqual(sampled.context.spanId, parent.spanId);
  assert.equal(fresh.context.sampled, false);
  assert.notEqual(fresh.context.traceId, parent.traceId);
});

test("about the configured fraction of new traces is sampled, the same on all nodes", () => {
  const ids = createIdSource();
  const traces = Array.from({ length: 4_000 }, () => ids.traceId());
  const sampled = traces.filter((trace) => isSampled(trace, 0.25));
  assert.ok(Math.abs(sampled.length - 1_000) < 150, String(sampled.length));
  assert.ok(sampled.every((trace) => isSampled(trace, 0.5)));
});

test("a span keeps at most 64 attributes and the number of dropped ones", async (context) => {
  const { url, received } = await startCollector(context);
  const { tracer } = makeTracer(url);
  const span = tracer.startSpan({ name: "x" });
  for (let n = 0; n < 70; n += 1) span.setAttribute(`k${n}`, "v".repeat(5_000));
  span.end();
  await tracer.shutdown(1_000);
  const sent = received[0]!.spans[0]!;
  const attributes = sent["attributes"] as { value: { stringValue: string } }[];
  assert.equal(attributes.length, 64);
  assert.equal(attributes[0]!.value.stringValue.length, 4_096);
  assert.equal(sent["droppedAttributesCount"], 6);
});

test("a collector's address may be a base URL, a full one, or host and port", () => {
  const cases = [
    ["http://c:4318", "http://c:4318/v1/traces"],
    ["http://c:4318/", "http://c:4318/v1/traces"],
    ["https://c/otel", "https://c/otel/v1/traces"],
    ["https://c/v1/traces", "https://c/v1/traces"],
    ["c:4318", "http://c:4318/v1/traces"],
  ];
  for (const [address, endpoint] of cases) assert.equal(resolveTracesEndpoint(address!), endpoint);
  assert.throws(() => resolveTracesEndpoint("ftp://c"), /http or https/);
  assert.throws(() => resolveTracesEndpoint("http://"), /http or https/);
});
