// What is counted of the object API and its store.
import type { MetricFamily, MetricRegistry } from "@platform/kernel/metrics";
import { foldMethod } from "@platform/kernel/metrics";
import type { Store } from "../store.ts";
import type { FinishedRequest } from "./object-server.ts";

/** The metrics of one vault. */
export interface ObjectMetrics {
  onStarted: () => void;
  onFinished: (finished: FinishedRequest, durationMs: number) => void;
}

/** Makes the families in `registry`; the store is asked at each scrape. */
export function createObjectMetrics(registry: MetricRegistry, store: Store): ObjectMetrics {
  const labels = ["operation", "method", "status"] as const;
  const requests = registry.counter({
    name: "platform_vault_http_requests_total",
    help: "Requests to the object API that were answered.",
    labels,
  });
  const duration = registry.histogram({
    name: "platform_vault_request_duration_seconds",
    help: "Time from a request's head to the end of its answer.",
    labels: ["operation"],
  });
  const inflight = registry.gauge({
    name: "platform_vault_inflight_requests",
    help: "Requests to the object API under way.",
  });
  const errors = registry.counter({
    name: "platform_vault_errors_total",
    help: "Error answers of the object API by code.",
    labels: ["code"],
  });
  registry.collect({ name: "vault-store", collect: () => collectStore(store) });
  return {
    onStarted: () => inflight.add(1),
    onFinished: ({ operation, request, status, errorCode }, durationMs) => {
      inflight.add(-1);
      requests.with({ operation, method: foldMethod(request.method), status }).add();
      duration.with({ operation }).observe(durationMs / 1000);
      if (errorCode !== undefined) errors.with({ code: errorCode }).add();
    },
  };
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
  const drives = store.listDrives();
  const countDrives = (state: (typeof drives)[number]["state"]) =>
    drives.filter((drive) => drive.state === state).length;
  return [
    gauge("drives_absent", "Drives that take no part.", countDrives("absent")),
    gauge("drives_healing", "Drives that lack something still.", countDrives("healing")),
    gauge("buckets_total", "Buckets.", stats.buckets),
    gauge("objects_total", "Live objects.", stats.objects),
    gauge("storage_bytes", "Bytes of all versions and parts.", stats.storageBytes),
    gauge("free_bytes", "Bytes free on the disk.", stats.freeBytes),
    gauge("garbage_bytes", "Bytes in segments that nothing refers to.", stats.garbageBytes),
    gauge("staging_bytes", "Bytes of bodies in memory on their way in.", stats.stagingBytes),
    gauge("waiting_writers", "Writes that wait for their commit.", stats.waitingWriters),
    gauge("open_files", "Files kept open.", stats.openFiles),
    gauge("pending_events", "Events that wait for delivery.", stats.pendingEvents),
    counter(
      "dropped_events_total",
      "Events that were dropped because too many waited.",
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
  ];
}
