// The merged metrics: sums over workers that live and workers that died.
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderMetrics } from "@platform/kernel/metrics";
import { Confinement } from "../../src/resolve/confinement.ts";
import { resolveRoute } from "../../src/resolve/resolve-route.ts";
import { GateMetrics } from "../../src/telemetry/gate-metrics.ts";
import { RoutePlanner } from "../../src/control/planner.ts";
import {
  ActiveCounts,
  METRIC_SERIES_MAX,
  MetricBlock,
  SharedTargetState,
  allocateMetricBlock,
  allocateSharedBuffers,
} from "../../src/shared-state/index.ts";

function makeMetrics() {
  const shared = allocateSharedBuffers(2);
  const planner = new RoutePlanner({
    routesMax: 10,
    targetsMax: 10,
    linksMax: 1_000,
    reuseDelayMs: 0,
    readNowMs: () => 0,
    onRouteReuse: () => undefined,
    onLinkReuse: () => undefined,
    onTargetReuse: () => undefined,
  });
  const route = resolveRoute(
    { prefix: "/a", targets: ["http://t/x", "http://t/y"] },
    {
      bodyBytesMax: 1,
      timeouts: { connectMs: 1, responseHeadMs: 1, idleMs: 1, totalMs: 0 },
      jwksUrl: undefined,
      cutFields: [],
      streamMsMax: 600_000,
      issuer: undefined,
      audience: undefined,
      isBindingStrict: false,
      place: { cluster: "default", region: "us-east" },
      confinement: new Confinement({ roots: [], variables: [], networks: [] }),
    },
  );
  planner.plan({ added: [route], updated: [], removed: [] }).commit();
  const spec = planner.findSpec(route.key) ?? assert.fail();
  const blocks = [0, 1].map(() => new MetricBlock(allocateMetricBlock()));
  const active = new ActiveCounts(shared);
  const metrics = new GateMetrics({
    listBlocks: () => blocks,
    planner,
    active,
    targets: new SharedTargetState(shared.targets),
    countLiveWorkers: () => blocks.length,
    cache: { entries: 0, bytes: 0, evicted: 0 },
    countRoutes: () => 1,
    readSharedMs: () => 0,
  });
  const count = (block: MetricBlock | undefined, requests: number): void => {
    assert.ok(block !== undefined);
    for (let done = 0; done < requests; done++) {
      block.addRequest(block.findSeries(spec.metricsId, 1, 200), 0.002);
    }
    block.setCounter("requests", block.readCounter("requests") + requests);
    block.setCounter("connectionsActive", 5);
    block.addUpstreamError(spec.targets[0]?.slot ?? -1);
  };
  return { metrics, blocks, active, spec, count };
}

test("metrics of workers are summed; totals of an ended worker are kept, its gauges are not", () => {
  const { metrics, blocks, count } = makeMetrics();
  count(blocks[0], 3);
  count(blocks[1], 4);
  const [dead] = blocks.splice(0, 1);
  metrics.retire(dead ?? assert.fail());
  blocks.push(new MetricBlock(allocateMetricBlock()));
  count(blocks[1], 1);
  const totals = metrics.readTotals();
  assert.equal(totals.requests, 8);
  assert.equal(
    totals.buckets.reduce((sum, bucket) => sum + bucket, 0),
    8,
  );
  const text = renderMetrics(metrics.collect());
  assert.match(text, /platform_http_requests_total\{route="\/a",method="GET",status="200"\} 8\n/);
  assert.match(text, /platform_http_duration_seconds_count\{[^}]*\} 8\n/);
  assert.match(text, /platform_gate_connections_active 10\n/);
  const errors = text.match(/^platform_gate_upstream_errors_total\{.*$/gm);
  assert.deepEqual(errors, ['platform_gate_upstream_errors_total{upstream="http://t"} 3']);
  assert.match(text, /platform_gate_workers_replaced_total 1\n/);
});

test("combinations beyond the maximum are one series, also of ended workers, without loss", () => {
  const { metrics, blocks } = makeMetrics();
  const perWorker = METRIC_SERIES_MAX - 1;
  for (const from of [0, perWorker]) {
    const block = new MetricBlock(allocateMetricBlock());
    for (let id = 1; id <= perWorker; id++) {
      block.addRequest(block.findSeries(from + id, 1, 200), 0.002);
    }
    metrics.retire(block);
  }
  blocks.splice(0);
  const family = metrics.collect().find(({ name }) => name === "platform_http_requests_total");
  const samples = [...(family?.samples ?? [])];
  assert.equal(samples.length, METRIC_SERIES_MAX + 1);
  const overflow = samples.find(({ labels }) => labels.some(([, value]) => value === "overflow"));
  assert.deepEqual(overflow, {
    labels: [
      ["route", "overflow"],
      ["method", "OTHER"],
      ["status", "0"],
    ],
    value: perWorker - 1,
  });
});

test("a target's errors are cleared when its slot is reused", () => {
  const { metrics, blocks, spec, count } = makeMetrics();
  count(blocks[0], 1);
  metrics.retire(blocks[0] ?? assert.fail());
  metrics.forgetTarget(spec.targets[0]?.slot ?? -1);
  assert.match(
    renderMetrics(metrics.collect()),
    /upstream_errors_total\{upstream="http:\/\/t"\} 0\n/,
  );
});

test("connections are counted across workers by upstream URL", () => {
  const { metrics, active, spec } = makeMetrics();
  active.add(0, spec.targets[0]?.slot ?? -1, 1);
  active.add(1, spec.targets[0]?.slot ?? -1, 1);
  assert.deepEqual(metrics.readConnections(), { "http://t/x": 2 });
});
