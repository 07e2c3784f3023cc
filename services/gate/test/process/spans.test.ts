// The gateway as a process that sends its spans to an OTLP/HTTP collector, which may hang, refuse or vanish.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, type IncomingMessage, type RequestListener, createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { findFreePort } from "@platform/kernel/testing";
import { runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { followMetric, readMetric } from "../fixture/metrics.ts";
import { shareGate, type StartedGate } from "../fixture/shared-gate.ts";

/** Spans that an exporter keeps waiting, and those of the batch that it is sending. */
const WAITING_MAX = 2_048 + 512;
/** A request that waited for a collector would take the 10 s of its timeout. */
const REQUEST_MS_MAX = 5_000;
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";

interface Attribute {
  key: string;
  value: { stringValue?: string; intValue?: string };
}
interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  kind: number;
  attributes: Attribute[];
  service: string;
}
interface Export {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: { spans: Omit<ReceivedSpan, "service">[] }[];
  }[];
}

async function startServer(context: TestContext, listener: RequestListener, port = 0) {
  const server = createServer(listener).listen(port, "127.0.0.1");
  await once(server, "listening");
  const stop = (): void => {
    server.close();
    server.closeAllConnections();
  };
  context.after(stop);
  const { port: real } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${real}`, port: real, stop };
}

/** A collector that parses what it receives. */
async function startCollector(context: TestContext, spans: ReceivedSpan[], port = 0) {
  return startServer(
    context,
    (request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (text: string) => (body += text));
      request.on("end", () => {
        assert.equal(request.url, "/v1/traces");
        for (const { resource, scopeSpans } of (JSON.parse(body) as Export).resourceSpans) {
          const service = findText(resource.attributes, "service.name");
          for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
            spans.push({ ...span, service });
          }
        }
        response.setHeader("content-type", "application/json").end("{}");
      });
    },
    port,
  );
}

function findText(attributes: readonly Attribute[], key: string): string {
  const value = attributes.find((attribute) => attribute.key === key)?.value;
  return value?.stringValue ?? value?.intValue ?? "";
}

/** Address of the collectors of the gateways that tests share. */
const collectorPort = await findFreePort();

/** Routes `/a` to an upstream that keeps what it receives. */
async function startTraced(
  context: TestContext,
  start: (config: Record<string, unknown>) => Promise<StartedGate>,
) {
  const seen: string[] = [];
  const upstream = await startServer(context, (request, response) => {
    seen.push(String(request.headers["traceparent"]));
    response.end("ok");
  });
  const gate = await start({ workers: 1, routes: [{ prefix: "/a", target: upstream.url }] });
  return { gate, upstream, seen };
}

/** Sends `count` requests, each sampled, eight at a time; all must be answered 200. Returns the longest time in ms. */
async function sendSampled(url: string, count: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  let left = count;
  let longestMs = 0;
  const ask = async (): Promise<void> => {
    while (left-- > 0) {
      const startedMs = performance.now();
      const [answer] = (await once(get(url, { agent }), "response")) as [IncomingMessage];
      answer.resume();
      await once(answer, "end");
      assert.equal(answer.statusCode, 200);
      longestMs = Math.max(longestMs, performance.now() - startedMs);
    }
  };
  await Promise.all(Array.from({ length: 8 }, ask));
  agent.destroy();
  return longestMs;
}

for (const runtime of runtimesOfRules) {
  const shared = shareGate({
    runtime,
    env: { PLATFORM_OTLP_ENDPOINT: `http://127.0.0.1:${collectorPort}` },
  });

  test(`${runtime.name}: the span of a request reaches the collector under the caller's, and the upstream's would be under it`, async (context) => {
    const spans: ReceivedSpan[] = [];
    await startCollector(context, spans, collectorPort);
    const { gate, upstream, seen } = await startTraced(context, shared.use);
    const readDropped = await followMetric(gate.url, "platform_trace_spans_dropped_total");
    const headers = { traceparent: `00-${TRACE}-${PARENT}-01` };
    assert.equal((await fetch(`${gate.url}/a/b?secret=1`, { headers })).status, 200);
    const long = `/a/${"x".repeat(9_000)}`;
    assert.equal((await fetch(gate.url + long)).status, 200);
    // Requests for metrics have spans, too.
    const findOwn = (): ReceivedSpan[] => spans.filter(({ name }) => name === "GET /a");
    await waitFor(() => findOwn().length >= 2, "two spans");
    const [span, cut] = findOwn().toSorted((one) => (one.traceId === TRACE ? -1 : 1));
    assert.ok(span !== undefined && cut !== undefined);
    assert.equal(span.traceId, TRACE);
    assert.equal(span.parentSpanId, PARENT);
    assert.equal(span.service, "gate");
    assert.equal(span.name, "GET /a");
    assert.equal(span.kind, 2);
    assert.equal(seen[0], `00-${TRACE}-${span.spanId}-01`);
    const texts = [
      "http.request.method",
      "http.route",
      "http.response.status_code",
      "url.path",
      "client.address",
      "platform.upstream",
    ].map((key) => findText(span.attributes, key));
    assert.deepEqual(texts, ["GET", "/a", "200", "/a/b", "127.0.0.1", upstream.url]);
    assert.equal(findText(cut.attributes, "url.path"), long.slice(0, 4_096));
    await waitFor(
      async () => (await readMetric(gate.url, "platform_trace_spans_exported_total")) >= 2,
      "the exported spans in the metrics",
    );
    assert.equal(await readDropped(), 0);
  });

  test(`${runtime.name}: a collector that disappears delays no request, and receives spans again when it is back`, async (context) => {
    const spans: ReceivedSpan[] = [];
    const collector = await startCollector(context, spans, collectorPort);
    const { gate } = await startTraced(context, shared.use);
    await sendSampled(`${gate.url}/a`, 600);
    await waitFor(() => spans.length >= 512, "the first batch");
    collector.stop();
    const longestMs = await sendSampled(`${gate.url}/a`, 600);
    assert.ok(longestMs < REQUEST_MS_MAX, `a request took ${longestMs} ms`);
    const before = spans.length;
    await startCollector(context, spans, collectorPort);
    // On a busy machine the retries of the first batch may be used up; those behind it are still sent.
    await waitFor(() => spans.length > before, "further spans");
    assert.equal(new Set(spans.map((span) => span.spanId)).size, spans.length);
  });

  for (const kind of ["hangs", "refuses connections"] as const) {
    // Each of these takes a start and thousands of requests: on Bun the harder one is enough.
    if (kind === "refuses connections" && runtime.name === "bun") continue;
    test(`${runtime.name}: a collector that ${kind} delays no request and no stop, and the lost spans are counted`, async (context) => {
      const collector = await startServer(context, () => undefined);
      if (kind === "refuses connections") collector.stop();
      const { gate } = await startTraced(context, (config) =>
        startGate(context, { runtime, config, env: { PLATFORM_OTLP_ENDPOINT: collector.url } }),
      );
      const extra = 600;
      const longestMs = await sendSampled(`${gate.url}/a`, WAITING_MAX + extra);
      assert.ok(longestMs < REQUEST_MS_MAX, `a request took ${longestMs} ms`);
      const dropped = await readMetric(gate.url, "platform_trace_spans_dropped_total", {
        reason: "queue_full",
      });
      assert.ok(dropped >= extra, `${dropped} spans were dropped`);
      assert.equal(await readMetric(gate.url, "platform_trace_spans_exported_total"), 0);
      const startedMs = performance.now();
      gate.signal("SIGTERM");
      assert.equal((await gate.ended).code, 0);
      assert.ok(performance.now() - startedMs < 10_000, "the stop waited for the collector");
    });
  }
}
