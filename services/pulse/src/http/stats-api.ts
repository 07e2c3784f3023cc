// The broker's statistics as JSON: all topics for the operator, its own topics for a tenant.
import { z } from "zod";
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import type { Backlog } from "../dispatch/backlog.ts";
import type { TenantCounts } from "../tenant/tenant-counts.ts";
import type { Tenant } from "../topic/name.ts";
import type { Topics } from "../topic/topics.ts";
import { type Admission, tenantOf } from "./admission.ts";

const statsAnswer = z.object({
  messages_published: z.int(),
  wasm_executions: z.int(),
  wasm_execution_errors: z.int(),
  wasm_avg_duration_ns: z.number(),
  topics_count: z.int(),
  wal_entries: z.int(),
  queue_depth: z.int(),
  dropped: z.int(),
  uptime_sec: z.int(),
});

/** The body of `/api/v1/stats`. */
type Stats = z.infer<typeof statsAnswer>;

/** Reads the statistics of a tenant; "" is the operator, which sees all tenants. */
export type StatsReader = (tenant: Tenant) => Stats;

/** Options of the statistics. */
export interface StatsOptions {
  topics: Topics;
  backlog: Backlog;
  tenantCounts: TenantCounts;
  clock: Clock;
  /** Statistics of all tenants. */
  readTotals: () => Omit<Stats, "queue_depth" | "topics_count" | "uptime_sec">;
}

/** Creates the reader; `uptime_sec` starts here. */
export function createStatsReader(options: StatsOptions): StatsReader {
  const { topics, backlog, tenantCounts, clock, readTotals } = options;
  const startedMs = clock.monotonicMs();
  const readUptime = () => Math.floor((clock.monotonicMs() - startedMs) / 1000);
  return (tenant) => {
    if (tenant === "") {
      return {
        ...readTotals(),
        topics_count: topics.count,
        queue_depth: backlog.totalDepth(),
        uptime_sec: readUptime(),
      };
    }
    const figures = tenantCounts.read(tenant);
    const { executions, executionNs } = figures;
    let entries = 0;
    let depth = 0;
    for (const topic of topics.list(tenant)) {
      depth += backlog.depthOf(topic);
      for (const { logStart, durableEnd } of topic.stored.partitions) {
        entries += durableEnd - logStart;
      }
    }
    return {
      messages_published: figures.published,
      wasm_executions: executions,
      wasm_execution_errors: figures.executionErrors,
      wasm_avg_duration_ns: executions === 0 ? 0 : Math.round(executionNs / executions),
      topics_count: topics.countOf(tenant),
      wal_entries: entries,
      queue_depth: depth,
      dropped: figures.dropped,
      uptime_sec: readUptime(),
    };
  };
}

/** The route for statistics. */
export function createStatsRoute(readStats: StatsReader, admission: Admission): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/stats",
    summary: "Statistics of the broker; /api/v1/stats/ws sends them every second",
    description:
      "Tenants get the statistics of their own topics; `wal_entries` is then the number of stored messages.",
    tag: "Operation",
    access: admission.anyRight,
    answer: statsAnswer,
    handle: ({ caller }) => readStats(tenantOf(caller)),
  });
}
