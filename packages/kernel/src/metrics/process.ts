// Metrics of the process, with the conventional names of Prometheus client libraries.
// https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics
import { readdirSync, readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Collector, LabelPairs, MetricFamily } from "./family.ts";

/** The program that the metrics describe. */
export interface BuildInfo {
  service: string;
  version: string;
}

/** Collector of process metrics, with a method that stops event-loop sampling. */
export interface ProcessCollector extends Collector {
  close(): void;
}

const LOOP_RESOLUTION_MS = 20;

/**
 * CPU, memory, file descriptors (if /proc exists), event-loop lag since the last scrape, start time and build info. The
 * lag is the delay of timers beyond the sampling interval.
 */
export function createProcessCollector(build: BuildInfo): ProcessCollector {
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  const fdsMax = readFdsMax();
  return {
    name: "process",
    collect: () => {
      const families = [
        ...readUsage(),
        ...readFds(fdsMax),
        ...readLoop(loop),
        gauge("platform_build_info", "The running program; the value is always 1.", 1, [
          ["service", build.service],
          ["version", build.version],
          ["runtime", process.versions["bun"] === undefined ? "node" : "bun"],
          ["runtime_version", process.versions["bun"] ?? process.versions.node],
        ]),
      ];
      loop.reset();
      return families;
    },
    close: () => {
      loop.disable();
    },
  };
}

function readUsage(): MetricFamily[] {
  const cpu = process.cpuUsage();
  const memory = process.memoryUsage();
  return [
    counter("process_cpu_seconds_total", "CPU time spent.", (cpu.user + cpu.system) / 1e6),
    counter("process_cpu_user_seconds_total", "CPU time spent in user mode.", cpu.user / 1e6),
    counter("process_cpu_system_seconds_total", "CPU time spent in the kernel.", cpu.system / 1e6),
    gauge("process_resident_memory_bytes", "Resident memory.", memory.rss),
    gauge("nodejs_heap_size_total_bytes", "Heap reserved by the runtime.", memory.heapTotal),
    gauge("nodejs_heap_size_used_bytes", "Heap in use.", memory.heapUsed),
    gauge("nodejs_external_memory_bytes", "Memory outside the heap.", memory.external),
    gauge("nodejs_array_buffers_bytes", "Memory of array buffers.", memory.arrayBuffers),
    gauge(
      "process_start_time_seconds",
      "Start time of the process, in seconds since 1970.",
      performance.timeOrigin / 1000,
    ),
  ];
}

function readFds(fdsMax: number | undefined): MetricFamily[] {
  const families: MetricFamily[] = [];
  try {
    // The listing itself uses one descriptor.
    const open = readdirSync("/proc/self/fd").length - 1;
    families.push(gauge("process_open_fds", "Open file descriptors.", open));
  } catch {
    // Available only on Linux; the metric is omitted elsewhere.
  }
  if (fdsMax !== undefined) {
    families.push(gauge("process_max_fds", "Maximum number of file descriptors.", fdsMax));
  }
  return families;
}

function readFdsMax(): number | undefined {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
    return found === null ? undefined : Number(found[1]);
  } catch {
    return undefined;
  }
}

function readLoop(loop: ReturnType<typeof monitorEventLoopDelay>): MetricFamily[] {
  const seconds = (nanoseconds: number): number =>
    Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - LOOP_RESOLUTION_MS / 1e3) : 0;
  return [
    gauge(
      "nodejs_eventloop_lag_mean_seconds",
      "Mean event-loop lag since the last scrape.",
      seconds(loop.mean),
    ),
    gauge(
      "nodejs_eventloop_lag_p99_seconds",
      "99th percentile of event-loop lag since the last scrape.",
      seconds(loop.percentile(99)),
    ),
    gauge(
      "nodejs_eventloop_lag_max_seconds",
      "Longest event-loop lag since the last scrape.",
      loop.max > 1e15 ? 0 : seconds(loop.max),
    ),
  ];
}

function counter(name: string, help: string, value: number): MetricFamily {
  return { type: "counter", name, help, samples: [{ labels: [], value }] };
}

function gauge(name: string, help: string, value: number, labels: LabelPairs = []): MetricFamily {
  return { type: "gauge", name, help, samples: [{ labels, value }] };
}
