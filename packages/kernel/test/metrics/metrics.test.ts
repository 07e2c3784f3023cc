// Metrics: bounded label sets, collectors, and Prometheus text.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import {
  createHttpMetrics,
  createProcessCollector,
  MetricRegistry,
  renderMetrics,
  type MetricFamily,
} from "@platform/kernel/metrics";

const lines = (text: string, name: string): string[] =>
  text.split("\n").filter((line) => line.startsWith(name) && !line.startsWith("#"));

describe("counters and gauges", () => {
  test("a counter without labels starts at zero", async () => {
    const registry = new MetricRegistry();
    registry.counter({ name: "jobs_total", help: "Jobs." });
    const text = await registry.render();
    assert.match(text, /# HELP jobs_total Jobs\.\n# TYPE jobs_total counter\njobs_total 0\n/);
  });

  test("series are distinguished by label values with any characters", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(fc.string(), fc.string()), {
          selector: ([a, b]) => JSON.stringify([a, b]),
          maxLength: 30,
        }),
        (pairs) => {
          const counter = new MetricRegistry().counter({ name: "c", help: "", labels: ["a", "b"] });
          pairs.forEach(([a, b], index) => counter.with({ a, b }).add(index + 1));
          pairs.forEach(([a, b], index) => assert.equal(counter.with({ a, b }).value, index + 1));
        },
      ),
    );
  });

  test("a counter never decreases", () => {
    const counter = new MetricRegistry().counter({ name: "c", help: "" });
    counter.add(2);
    counter.add(-5);
    counter.add(Number.NaN);
    assert.equal(counter.with({}).value, 2);
  });

  test("a full family adds further labels to one overflow series and counts them", async () => {
    const registry = new MetricRegistry();
    const gauge = registry.gauge({ name: "g", help: "", labels: ["user"], seriesMax: 2 });
    for (const user of ["a", "b", "c", "d", "c"]) gauge.with({ user }).add(1);
    const text = await registry.render();
    assert.deepEqual(lines(text, "g{"), ['g{user="a"} 1', 'g{user="b"} 1', 'g{user="overflow"} 3']);
    assert.deepEqual(lines(text, "platform_metrics_overflow_total"), [
      'platform_metrics_overflow_total{metric="g"} 3',
    ]);
  });

  test("a removed series frees its place and is not rendered", async () => {
    const registry = new MetricRegistry();
    const gauge = registry.gauge({ name: "g", help: "", labels: ["user"], seriesMax: 1 });
    gauge.with({ user: "a" }).set(1);
    gauge.remove({ user: "a" });
    gauge.with({ user: "b" }).set(2);
    assert.deepEqual(lines(await registry.render(), "g{"), ['g{user="b"} 2']);
  });

  test("invalid names, duplicate metrics and too many families are rejected", () => {
    const registry = new MetricRegistry({ familiesMax: 4 });
    assert.throws(() => registry.counter({ name: "1x", help: "" }), /not allowed: 1x/);
    assert.throws(() => registry.counter({ name: "x", help: "", labels: ["__a"] }), /__a/);
    assert.throws(() => registry.histogram({ name: "x", help: "", labels: ["le"] }), /le/);
    assert.throws(
      () => registry.counter({ name: "x", help: "", labels: ["a", "a"] }),
      /duplicate label/,
    );
    assert.throws(() => registry.histogram({ name: "x", help: "", bounds: [2, 1] }), /ascending/);
    registry.counter({ name: "x", help: "" });
    assert.throws(() => registry.gauge({ name: "x", help: "" }), /exists already/);
    assert.throws(() => registry.gauge({ name: "y", help: "" }), /too many/);
  });
});

describe("text exposition", () => {
  test("label values and help texts are escaped", () => {
    const family: MetricFamily = {
      type: "gauge",
      name: "g",
      help: 'a\\b\nc "d"',
      samples: [{ labels: [["path", 'C:\\x "y"\nz']], value: 1.5 }],
    };
    assert.equal(
      renderMetrics([family]),
      '# HELP g a\\\\b\\nc "d"\n# TYPE g gauge\ng{path="C:\\\\x \\"y\\"\\nz"} 1.5\n',
    );
  });

  test("infinities and NaN have the spelling of the format", () => {
    const show = (value: number): string =>
      renderMetrics([
        { type: "gauge", name: "g", help: "", samples: [{ labels: [], value }] },
      ]).split("\n")[2]!;
    assert.deepEqual([Infinity, -Infinity, NaN].map(show), ["g +Inf", "g -Inf", "g NaN"]);
  });

  test("histogram buckets are cumulative and include their bound", async () => {
    const registry = new MetricRegistry();
    const histogram = registry.histogram({ name: "h", help: "", labels: ["r"], bounds: [1, 2.5] });
    for (const value of [0.5, 1, 2, 3, Number.NaN]) histogram.with({ r: "a" }).observe(value);
    assert.deepEqual(lines(await registry.render(), "h_"), [
      'h_bucket{r="a",le="1"} 2',
      'h_bucket{r="a",le="2.5"} 3',
      'h_bucket{r="a",le="+Inf"} 4',
      'h_sum{r="a"} 6.5',
      'h_count{r="a"} 4',
    ]);
  });
});

describe("collectors", () => {
  test("families of the same name are merged and equal series are added", async () => {
    const registry = new MetricRegistry();
    const http = createHttpMetrics(registry);
    http.observe("/a", "GET", 200, 3);
    const shared = new Float64Array(new SharedArrayBuffer(8));
    shared[0] = 41;
    registry.collect({
      name: "workers",
      collect: () => [
        {
          type: "counter",
          name: "platform_http_requests_total",
          help: "",
          samples: [
            {
              labels: [
                ["route", "/a"],
                ["method", "GET"],
                ["status", "200"],
              ],
              value: shared[0]!,
            },
          ],
        },
      ],
    });
    const text = await registry.render();
    assert.equal(text.match(/# TYPE platform_http_requests_total/g)?.length, 1);
    assert.deepEqual(lines(text, "platform_http_requests_total"), [
      'platform_http_requests_total{route="/a",method="GET",status="200"} 42',
    ]);
  });

  test("collectors that throw, time out or contradict are omitted and counted", async () => {
    const registry = new MetricRegistry({ collectorTimeoutMs: 5 });
    registry.gauge({ name: "fine", help: "" }).set(7);
    registry.collect({
      name: "broken",
      collect: () => {
        throw new Error("no");
      },
    });
    registry.collect({ name: "late", collect: () => new Promise(() => {}) });
    registry.collect({
      name: "clash",
      collect: () => [{ type: "counter", name: "fine", help: "", samples: [] }],
    });
    assert.deepEqual(lines(await registry.render(), "fine"), ["fine 7"]);
    const text = await registry.render();
    assert.deepEqual(lines(text, "platform_metrics_collector_errors_total"), [
      'platform_metrics_collector_errors_total{collector="broken"} 2',
      'platform_metrics_collector_errors_total{collector="late"} 2',
    ]);
    assert.deepEqual(lines(text, "platform_metrics_conflicts_total"), [
      'platform_metrics_conflicts_total{metric="fine"} 1',
    ]);
  });

  test("a removed collector is not called again", async () => {
    const registry = new MetricRegistry();
    const stop = registry.collect({
      name: "c",
      collect: () => [{ type: "gauge", name: "c", help: "", samples: [{ labels: [], value: 1 }] }],
    });
    assert.deepEqual(lines(await registry.render(), "c "), ["c 1"]);
    stop();
    assert.deepEqual(lines(await registry.render(), "c "), []);
  });

  test("process metrics contain CPU, memory, start time, event-loop lag and build", async () => {
    const registry = new MetricRegistry();
    const own = createProcessCollector({ service: "gate", version: "1.0.0" });
    registry.collect(own);
    const text = await registry.render();
    own.close();
    for (const name of [
      "process_cpu_seconds_total",
      "process_resident_memory_bytes",
      "process_start_time_seconds",
      "nodejs_heap_size_used_bytes",
      "nodejs_eventloop_lag_p99_seconds",
    ]) {
      assert.match(text, new RegExp(`^${name} [0-9.e+-]+$`, "m"));
    }
    assert.match(text, /platform_build_info\{service="gate",version="1.0.0",runtime="/);
    const start = Number(/^process_start_time_seconds (\S+)/m.exec(text)![1]);
    assert.ok(Math.abs(start - (Date.now() / 1000 - process.uptime())) < 5);
  });
});

test("unknown request methods become OTHER", async () => {
  const registry = new MetricRegistry();
  createHttpMetrics(registry).observe("/a", "BREW", 405, 1);
  assert.match(
    await registry.render(),
    /requests_total\{route="\/a",method="OTHER",status="405"\} 1/,
  );
});
