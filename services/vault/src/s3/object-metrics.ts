// Metrics of the object API and its store.
import type { ServerFault } from "@platform/http1";
import type { Figure } from "@platform/kernel/feeds";
import {
  foldMethod,
  type HttpSeries,
  type MetricFamily,
  type MetricRegistry,
} from "@platform/kernel/metrics";
import type { Store, StoreStats } from "../object-store.ts";
import type { ScrubState } from "../upkeep/maintenance.ts";
import type { FinishedRequest } from "./finished-request.ts";

/** The metrics of the service. */
export interface ObjectMetrics {
  onStarted: () => void;
  onFinished: (finished: FinishedRequest, durationMs: number) => void;
  onFault: (fault: ServerFault) => void;
}

/** Names of the metrics of requests, for the admin feeds. */
export const REQUEST_METRICS = {
  requests: "platform_vault_http_requests_total",
  duration: "platform_vault_request_duration_seconds",
};

/** Figures of the store for the admin feeds. */
export function createFigures(store: Store): Figure[] {
  const figure = (
    name: string,
    unit: string,
    title: string,
    read: (stats: StoreStats) => number,
  ): Figure => ({ name, unit, title, kind: "gauge", read: () => read(store.readStats()) });
  return [
    {
      name: "user_buckets",
      unit: "",
      title: "Buckets without the access log's",
      kind: "gauge",
      read: () => store.buckets.usersCount,
    },
    figure("objects", "", "Objects", ({ objects }) => objects),
    figure("stored", "bytes", "Stored bytes", ({ storageBytes }) => storageBytes),
    figure("disk_free", "bytes", "Free disk space", ({ freeBytes }) => freeBytes),
    figure("waiting", "", "Waiting writes", (stats) => stats.waitingUploads + stats.waitingWriters),
    figure("events", "", "Events that wait for delivery", ({ pendingEvents }) => pendingEvents),
  ];
}

/** Registers the metrics; the store is read at each scrape. */
export function createObjectMetrics(registry: MetricRegistry, store: Store): ObjectMetrics {
  const labels = ["operation", "method", "status"] as const;
  const requests = registry.counter({
    name: REQUEST_METRICS.requests,
    help: "Requests to the object API that were answered.",
    labels,
  });
  const duration = registry.histogram({
    name: REQUEST_METRICS.duration,
    help: "Time from a request's head to the end of its answer.",
    labels: ["operation"],
  });
  const inflight = registry.gauge({
    name: "platform_vault_inflight_requests",
    help: "Requests to the object API in progress.",
  });
  const errors = registry.counter({
    name: "platform_vault_errors_total",
    help: "Error answers of the object API by code.",
    labels: ["code"],
  });
  const slow = registry.counter({
    name: "platform_vault_slow_uploads_total",
    help: "Requests that were refused because their bodies arrived too slowly.",
  });
  // Cached: a lookup by labels would have to build their text.
  const known = new Map<FinishedRequest["operation"], Map<string, Map<number, HttpSeries>>>();
  const findSeries = (
    operation: FinishedRequest["operation"],
    method: string,
    status: number,
  ): HttpSeries => {
    let byMethod = known.get(operation);
    if (byMethod === undefined) known.set(operation, (byMethod = new Map()));
    let byStatus = byMethod.get(method);
    if (byStatus === undefined) byMethod.set(method, (byStatus = new Map()));
    let series = byStatus.get(status);
    if (series === undefined) {
      series = {
        requests: requests.with({ operation, method, status }),
        duration: duration.with({ operation }),
      };
      byStatus.set(status, series);
    }
    return series;
  };
  registry.collect({ name: "vault-store", collect: () => collectStore(store) });
  registry.collect({ name: "vault-quotas", collect: () => collectQuotas(store) });
  return {
    onStarted: () => inflight.add(1),
    onFinished: ({ operation, request, status, errorCode }, durationMs) => {
      inflight.add(-1);
      const series = findSeries(operation, foldMethod(request.method), status);
      series.requests.add();
      series.duration.observe(durationMs / 1000);
      if (errorCode !== undefined) errors.with({ code: errorCode }).add();
    },
    onFault: ({ kind }) => {
      if (kind === "slow-body") slow.add(1);
    },
  };
}

/** Limit of buckets with quota series; the first by name. */
const QUOTA_SERIES_MAX = 100;

function collectQuotas(store: Store): MetricFamily[] {
  const limited = store.buckets
    .list()
    .filter(({ settings }) => settings.quota !== undefined)
    .slice(0, QUOTA_SERIES_MAX)
    .map(({ name, settings }) => ({ name, quota: settings.quota, usage: store.readUsage(name) }));
  const family = (
    name: string,
    help: string,
    read: (bucket: (typeof limited)[number]) => number | undefined,
  ): MetricFamily => ({
    type: "gauge",
    name: `platform_vault_bucket_${name}`,
    help: `${help} Only for buckets with a quota, at most ${QUOTA_SERIES_MAX}.`,
    samples: limited.flatMap((bucket) => {
      const value = read(bucket);
      return value === undefined ? [] : [{ labels: [["bucket", bucket.name]] as const, value }];
    }),
  });
  return [
    family(
      "usage_bytes",
      "Bytes of versions and of parts of uploads in progress.",
      ({ usage }) => usage.bytes + usage.uploadBytes,
    ),
    family("usage_objects", "Versions, without delete markers.", ({ usage }) => usage.versions),
    family("quota_bytes", "Limit of bytes.", ({ quota }) => quota?.bytesMax),
    family("quota_objects", "Limit of versions.", ({ quota }) => quota?.objectsMax),
  ];
}

function collectScrub(
  { running, last }: ScrubState,
  gauge: (name: string, help: string, value: number) => MetricFamily,
): MetricFamily[] {
  const progress = running === undefined ? 0 : running.filesDone / Math.max(1, running.filesTotal);
  return [
    gauge("scrub_running", "1 while a scrub is running.", running === undefined ? 0 : 1),
    gauge("scrub_progress_ratio", "Share of the files that the running scrub has read.", progress),
    gauge(
      "scrub_last_complete_timestamp_seconds",
      "End of the last complete scrub; 0 if there was none.",
      (last?.endedMs ?? 0) / 1000,
    ),
    gauge(
      "scrub_last_complete_damaged",
      "Bodies that the last complete scrub found damaged or missing and could not heal.",
      (last?.damaged.length ?? 0) + (last?.missing.length ?? 0),
    ),
    gauge(
      "scrub_last_complete_healed",
      "Shards and copies that the last complete scrub rewrote.",
      last?.healed ?? 0,
    ),
  ];
}

function collectDrives(
  store: Store,
  gauge: (name: string, help: string, value: number) => MetricFamily,
): MetricFamily[] {
  const drives = store.listDrives();
  const count = (state: (typeof drives)[number]["state"]) =>
    drives.filter((drive) => drive.state === state).length;
  return [
    gauge("drives_absent", "Drives that take no part.", count("absent")),
    gauge("drives_healing", "Drives that lack something still.", count("healing")),
  ];
}

function collectStore(store: Store): MetricFamily[] {
  const stats = store.readStats();
  const gauge = (name: string, help: string, value: number): MetricFamily => ({
    type: "gauge",
    name: `platform_vault_${name}`,
    help,
    samples: [{ labels: [], value }],
  });
  const counter = (name: string, help: string, value: number): MetricFamily => ({
    type: "counter",
    name: `platform_vault_${name}`,
    help,
    samples: [{ labels: [], value }],
  });
  return [
    ...collectDrives(store, gauge),
    gauge("buckets_total", "Buckets.", stats.buckets),
    gauge("objects_total", "Live objects.", stats.objects),
    gauge("storage_bytes", "Bytes of all versions and parts.", stats.storageBytes),
    gauge("free_bytes", "Bytes free on the disk.", stats.freeBytes),
    gauge("reserve_bytes", "Bytes that writing leaves free.", stats.reserveBytes),
    gauge("garbage_bytes", "Bytes in segments that nothing refers to.", stats.garbageBytes),
    gauge("staging_bytes", "Bytes of bodies in memory on their way in.", stats.stagingBytes),
    {
      type: "gauge",
      name: "platform_vault_waiting_writers",
      help: "Waiting writes, by reason: memory for their bytes, or their commit.",
      samples: [
        { labels: [["for", "memory"]], value: stats.waitingUploads },
        { labels: [["for", "commit"]], value: stats.waitingWriters },
      ],
    },
    gauge("open_files", "Files kept open.", stats.openFiles),
    gauge("pending_events", "Events that wait for delivery.", stats.pendingEvents),
    counter(
      "dropped_events_total",
      "Events that were dropped because too many were pending.",
      stats.droppedEvents,
    ),
    counter("commits_total", "Group commits of the index.", stats.commits),
    counter(
      "committed_operations_total",
      "Operations in group commits.",
      stats.committedOperations,
    ),
    counter("commit_seconds_total", "Time spent in group commits.", stats.commitSeconds),
    counter(
      "corrupt_blocks_total",
      "Blocks that did not match their checksum.",
      stats.corruptBlocks,
    ),
    counter(
      "damaged_rows_total",
      "Rows of the index that did not match their checksum when they were read.",
      stats.damagedRows,
    ),
    gauge("quarantine_files", "Files without an object in quarantine.", stats.quarantine.files),
    gauge("quarantine_bytes", "Bytes of files in quarantine.", stats.quarantine.bytes),
    gauge(
      "index_copy_timestamp_seconds",
      "Time of the last copy of the index; 0 if there is no copy.",
      (stats.indexCopy.copiedMs ?? 0) / 1000,
    ),
    gauge(
      "index_damaged",
      "1 if the last check of the index found damage.",
      stats.indexCopy.findings.length > 0 ? 1 : 0,
    ),
    ...collectScrub(store.maintenance.readScrub(), gauge),
  ];
}
