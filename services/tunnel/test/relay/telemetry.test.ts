// Spans and metrics by their specified names, and trace context on its way through the tunnel.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import {
  Cleanup,
  send,
  startLocal,
  startTestClient,
  startTestRelay,
  type ClientStage,
  type RelayStage,
} from "../fixture/stage.ts";

interface Span {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
}

interface Export {
  resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
}

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const VISITOR_SPAN_ID = "b7ad6b7169203331";
const TRACEPARENT = `00-${TRACE_ID}-${VISITOR_SPAN_ID}-01`;
const TRACESTATE = "vendor=opaque,other=1";

const cleanup = new Cleanup();
const spans: Span[] = [];
const seen: { traceparent: string; tracestate: string }[] = [];
let relay: RelayStage;
let client: ClientStage;
const host = "traced.localhost";

before(async () => {
  const collector = await startLocal(cleanup, (request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => void (text += piece));
    request.on("end", () => {
      for (const { scopeSpans } of (JSON.parse(text) as Export).resourceSpans) {
        spans.push(...scopeSpans.flatMap((scope) => scope.spans));
      }
      response.setHeader("Content-Type", "application/json").end("{}");
    });
  });
  const local = await startLocal(cleanup, ({ headers }, response) => {
    const { traceparent, tracestate } = headers;
    seen.push({ traceparent: String(traceparent), tracestate: String(tracestate) });
    response.end("traced");
  });
  relay = await startTestRelay(cleanup, { otel_endpoint: `http://127.0.0.1:${collector}` });
  client = await startTestClient(cleanup, {
    port: relay.port,
    tunnels: [{ target: `127.0.0.1:${local}`, subdomain: "traced" }],
  });
});
after(() => cleanup.run());

async function findSpan(name: string, traceId?: string): Promise<Span> {
  const matches = (span: Span): boolean =>
    span.name === name && (traceId === undefined || span.traceId === traceId);
  await waitFor(() => spans.some(matches));
  return spans.find(matches)!;
}

async function readMetrics(): Promise<string> {
  return String((await send({ port: relay.port, host: "localhost", path: "/metrics" })).body);
}

test("a visitor's trace continues through tunnel.proxy to the local service", async () => {
  const headers = { traceparent: TRACEPARENT, tracestate: TRACESTATE };
  assert.equal((await send({ port: relay.port, host, headers })).status, 200);
  const span = await findSpan("tunnel.proxy", TRACE_ID);
  assert.equal(span.parentSpanId, VISITOR_SPAN_ID);
  assert.deepEqual(seen.at(-1), {
    traceparent: `00-${TRACE_ID}-${span.spanId}-01`,
    tracestate: TRACESTATE,
  });
});

test("a request without a trace begins one", async () => {
  assert.equal((await send({ port: relay.port, host })).status, 200);
  const [, traceId = "", spanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(
    seen.at(-1)!.traceparent,
  )!;
  assert.notEqual(traceId, TRACE_ID);
  assert.equal((await findSpan("tunnel.proxy", traceId)).spanId, spanId);
});

test("connections of clients and replays are spans", async () => {
  await findSpan("tunnel.connect");
  const [grant] = client.welcomes[0]!.tunnels;
  assert.ok(grant !== undefined && "id" in grant);
  const base = `/api/v1/tunnels/${grant.id}`;
  const api = { port: relay.port, host: "localhost" };
  const listed = await send({ ...api, path: `${base}/requests` });
  const { requests } = JSON.parse(String(listed.body)) as { requests: { id: string }[] };
  const path = `${base}/replay/${requests[0]!.id}`;
  const replayed = await send({ ...api, path, method: "POST" });
  assert.equal(replayed.status, 200, String(replayed.body));
  const span = await findSpan("tunnel.replay");
  assert.ok(seen.at(-1)!.traceparent.includes(span.traceId));
});

test("metrics have the specified names and types, and count", async () => {
  const before = await readMetrics();
  const read = (text: string, name: string): number =>
    Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
  await send({ port: relay.port, host });
  await send({ port: relay.port, host: "nobody.localhost" });
  const text = await readMetrics();
  const types = [
    ["platform_tunnel_active_connections", "gauge"],
    ["platform_tunnel_requests_proxied_total", "counter"],
    ["platform_tunnel_request_latency_ms", "histogram"],
    ["platform_tunnel_reconnections_total", "counter"],
    ["platform_tunnel_ring_buffer_size", "gauge"],
  ] as const;
  for (const [name, type] of types) {
    assert.match(text, new RegExp(`^# TYPE ${name} ${type}$`, "m"));
  }
  const growth = (name: string): number => read(text, name) - read(before, name);
  assert.equal(read(text, "platform_tunnel_active_connections"), 1);
  assert.equal(growth("platform_tunnel_requests_proxied_total"), 1);
  assert.equal(growth("platform_tunnel_request_latency_ms_count"), 1);
  assert.equal(growth("platform_tunnel_ring_buffer_size"), 1);
  assert.match(text, /^platform_tunnel_errors_total\{code="unknown_host"\} 1$/m);
});
