// Metrics of durable tasks.
import type { MetricFamily, MetricRegistry } from "@platform/kernel/metrics";
import { TASK_KINDS, type TaskCount, type TaskKind } from "../model/task.ts";
import type { TaskQueue } from "./task-queue.ts";

/** Registers the metrics. Counts of waiting tasks are at most some seconds old. */
export function collectTasks(registry: MetricRegistry, tasks: TaskQueue, now: () => number): void {
  const kindOf = (kind: TaskKind) => tasks.lastCounts.filter((one) => one.kind === kind);
  const sum = (kind: TaskKind, read: (one: TaskCount) => number) =>
    kindOf(kind).reduce((total, one) => total + read(one), 0);
  registry.collect({
    name: "vault-tasks",
    collect: (): MetricFamily[] => [
      {
        type: "gauge",
        name: "platform_vault_tasks",
        help: "Durable tasks by their state.",
        samples: TASK_KINDS.flatMap((kind) => [
          sample(
            { kind, state: "waiting" },
            sum(kind, ({ waiting }) => waiting),
          ),
          sample({ kind, state: "running" }, tasks.countRunning(kind)),
          sample(
            { kind, state: "dead" },
            sum(kind, ({ dead }) => dead),
          ),
        ]),
      },
      {
        type: "gauge",
        name: "platform_vault_task_oldest_seconds",
        help: "Age of the oldest waiting task.",
        samples: TASK_KINDS.map((kind) => sample({ kind }, readAge(kindOf(kind), now()))),
      },
      {
        type: "counter",
        name: "platform_vault_task_attempts_total",
        help: "Attempts of tasks: ended ones, failed ones that are repeated, and those that made their task dead.",
        samples: TASK_KINDS.flatMap((kind) =>
          Object.entries(tasks.readAttempts(kind)).map(([outcome, value]) =>
            sample({ kind, outcome }, value),
          ),
        ),
      },
    ],
  });
}

function readAge(counts: readonly TaskCount[], nowMs: number): number {
  const times = counts.flatMap(({ oldestMs }) => (oldestMs === undefined ? [] : [oldestMs]));
  return times.length === 0 ? 0 : Math.max(0, nowMs - Math.min(...times)) / 1_000;
}

function sample(labels: Readonly<Record<string, string>>, value: number) {
  return { labels: Object.entries(labels), value };
}
