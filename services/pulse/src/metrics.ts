// The broker's metrics.
import type { Figure } from "@platform/kernel/feeds";
import type { MetricFamily, MetricRegistry } from "@platform/kernel/metrics";
import type { LogStats, OffloadStatus } from "@platform/log";
import type { WorstLag } from "./activity/activity.ts";
import type { AnomalyKind } from "./anomaly/anomaly-log.ts";

const RUN_BOUNDS_NS = [1e4, 5e4, 1e5, 5e5, 1e6, 5e6, 1e7, 5e7, 1e8, 1e9];

/** Values read at each scrape. */
export interface MetricSources {
  published: () => number;
  topics: () => number;
  log: () => LogStats;
  subscribers: () => number;
  mqttConnections: () => number;
  deadLetters: () => number;
  lag: () => WorstLag;
  anomalies: () => Readonly<Record<AnomalyKind, number>>;
  offload: () => OffloadStatus;
  nowMs: () => number;
}

/** Counts runs of transforms. */
export class TransformRuns {
  executions = 0;
  errors = 0;
  #totalNs = 0;
  readonly #counts = new Float64Array(RUN_BOUNDS_NS.length + 1);

  /** Average duration of a run, in nanoseconds. */
  get averageNs(): number {
    return this.executions === 0 ? 0 : Math.round(this.#totalNs / this.executions);
  }

  /** Counts a run. */
  observe({ durationNs, failed }: { durationNs: number; failed: boolean }): void {
    this.executions++;
    if (failed) this.errors++;
    this.#totalNs += durationNs;
    const at = RUN_BOUNDS_NS.findIndex((bound) => durationNs <= bound);
    this.#counts[at < 0 ? RUN_BOUNDS_NS.length : at]! += 1;
  }

  /** The metrics. */
  collect(): MetricFamily[] {
    return [
      counter("platform_pulse_wasm_executions_total", "Runs of transforms.", this.executions),
      counter("platform_pulse_wasm_errors_total", "Runs of transforms that failed.", this.errors),
      {
        type: "histogram",
        name: "platform_pulse_wasm_duration_ns",
        help: "Time of one run of a transform.",
        samples: [{ labels: [], bounds: RUN_BOUNDS_NS, counts: this.#counts, sum: this.#totalNs }],
      },
    ];
  }
}

/** Registers the metrics. */
export function collectMetrics(
  registry: MetricRegistry,
  sources: MetricSources,
  runs: TransformRuns,
): void {
  registry.collect({
    name: "pulse",
    collect: () => [
      counter(
        "platform_pulse_messages_published_total",
        "Messages published.",
        sources.published(),
      ),
      counter("platform_pulse_dlq_messages_total", "Dead letters written.", sources.deadLetters()),
      gauge("platform_pulse_topics_count", "Topics.", sources.topics()),
      ...collectLag(sources.lag()),
      {
        type: "gauge",
        name: "platform_pulse_anomalies_active",
        help: "Anomalies of topics that last.",
        samples: Object.entries(sources.anomalies()).map(([kind, value]) => ({
          labels: [["kind", kind]],
          value,
        })),
      },
      ...collectDisk(sources.log()),
      ...collectDamage(sources.log()),
      ...collectOffload(sources.offload(), sources.nowMs()),
      gauge("platform_pulse_subscribers_count", "Subscribers.", sources.subscribers()),
      ...runs.collect(),
    ],
  });
}

/** Figures of the admin feeds. */
export function createFigures(sources: MetricSources): Figure[] {
  const figure = (
    name: string,
    unit: string,
    title: string,
    kind: "counter" | "gauge",
    read: () => number,
  ): Figure => ({ name, unit, title, kind, read });
  return [
    figure("published", "1/s", "Messages published", "counter", sources.published),
    figure("dead_letters", "1/s", "Dead letters", "counter", sources.deadLetters),
    figure("topics", "", "Topics", "gauge", sources.topics),
    figure("subscribers", "", "Subscribers", "gauge", sources.subscribers),
    figure("mqtt_connections", "", "MQTT connections", "gauge", sources.mqttConnections),
    figure("written", "bytes/s", "Bytes appended to the log", "counter", () => {
      return sources.log().appendedBytes;
    }),
    figure("disk_free", "bytes", "Free disk space", "gauge", () => sources.log().diskFreeBytes),
  ];
}

function collectLag({ messages, seconds }: WorstLag) {
  return [
    gauge(
      "platform_pulse_consumer_lag_messages",
      "Largest number of messages of a topic that one of its consumer groups has not read.",
      messages,
    ),
    gauge(
      "platform_pulse_consumer_lag_seconds",
      "Longest time since a consumer group has last reached the end of a topic.",
      seconds,
    ),
  ];
}

function collectDisk({ diskFull, diskFreeBytes, diskReserveBytes }: LogStats) {
  return [
    gauge(
      "platform_pulse_disk_full",
      "1 while publishing is refused because less than the reserve is free.",
      diskFull ? 1 : 0,
    ),
    gauge("platform_pulse_disk_free_bytes", "Free bytes of the log's disk.", diskFreeBytes),
    gauge(
      "platform_pulse_disk_reserve_bytes",
      "Bytes that publishing leaves free.",
      diskReserveBytes,
    ),
  ];
}

function collectDamage(stats: LogStats) {
  return [
    gauge(
      "platform_pulse_log_damage_found",
      "Damaged places found in the log's files at the last start and since.",
      stats.damageFound,
    ),
    gauge(
      "platform_pulse_log_damaged_ranges",
      "Ranges of stored messages that cannot be read.",
      stats.damagedRanges,
    ),
    gauge(
      "platform_pulse_log_quarantine_files",
      "Files in the log's quarantine.",
      stats.quarantineFiles,
    ),
    gauge(
      "platform_pulse_log_quarantine_bytes",
      "Bytes in the log's quarantine.",
      stats.quarantineBytes,
    ),
  ];
}

function collectOffload(status: OffloadStatus, nowMs: number): MetricFamily[] {
  const { uploads, reads, removals, errors, oldestPendingAtMs } = status;
  const lagMs = oldestPendingAtMs === undefined ? 0 : Math.max(0, nowMs - oldestPendingAtMs);
  const prefix = "platform_pulse_offload";
  return [
    labelled(`${prefix}_uploads_total`, "Uploads of segments.", "result", uploads),
    counter(`${prefix}_uploaded_bytes_total`, "Bytes of uploaded segments.", status.uploadedBytes),
    gauge(
      `${prefix}_pending_bytes`,
      "Bytes of closed segments that wait for their upload.",
      status.pendingBytes,
    ),
    gauge(
      `${prefix}_lag_seconds`,
      "Time since the oldest segment that waits for its upload was closed.",
      lagMs / 1_000,
    ),
    labelled(`${prefix}_reads_total`, "Reads of chunks of offloaded segments.", "source", reads),
    labelled(`${prefix}_removals_total`, "Removals of objects.", "result", removals),
    {
      type: "counter",
      name: `${prefix}_errors_total`,
      help: "Failed requests to object storage.",
      samples: [...errors].map(([key, value]) => {
        const [operation, code] = key.split(" ") as [string, string];
        return {
          labels: [
            ["operation", operation],
            ["code", code],
          ],
          value,
        };
      }),
    },
    gauge(
      `${prefix}_waiting_removals`,
      "Objects that wait for their removal.",
      status.waitingRemovals,
    ),
    gauge(
      `${prefix}_unknown_objects`,
      "Objects of this log that nothing refers to.",
      status.unknownObjects,
    ),
    gauge(`${prefix}_cache_bytes`, "Size of the cache of chunks.", status.cacheBytes),
  ];
}

function labelled(
  name: string,
  help: string,
  label: string,
  values: Readonly<Record<string, number>>,
): MetricFamily {
  const samples = Object.entries(values).map(([value, count]) => ({
    labels: [[label, value] as const],
    value: count,
  }));
  return { type: "counter", name, help, samples };
}

function counter(name: string, help: string, value: number) {
  return { type: "counter" as const, name, help, samples: [{ labels: [], value }] };
}

function gauge(name: string, help: string, value: number) {
  return { type: "gauge" as const, name, help, samples: [{ labels: [], value }] };
}
