// Metrics of questions about the metadata of buckets.
import type { MetricRegistry } from "@platform/kernel/metrics";
import type { MetadataQuestions, MetadataQuestionsOptions } from "./metadata-questions.ts";

/** Registers the metrics. Returns the function that counts finished questions. */
export function createSqlObserver(
  registry: MetricRegistry,
  getQuestions: () => Pick<MetadataQuestions, "waiting" | "children">,
): MetadataQuestionsOptions["onFinished"] {
  const requests = registry.counter({
    name: "platform_vault_sql_requests_total",
    help: "Questions about metadata by their end; killed ones exceeded a limit of time or memory.",
    labels: ["outcome"],
  });
  const gauge = (name: string, help: string, value: number) => ({
    type: "gauge" as const,
    name,
    help,
    samples: [{ labels: [], value }],
  });
  registry.collect({
    name: "vault-sql",
    collect: () => [
      gauge(
        "platform_vault_sql_waiting",
        "Questions about metadata that wait for a process.",
        getQuestions().waiting,
      ),
      gauge(
        "platform_vault_sql_processes",
        "Processes for questions about metadata.",
        getQuestions().children,
      ),
    ],
  });
  return (outcome) => requests.with({ outcome }).add();
}
