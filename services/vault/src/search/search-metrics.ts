// Metrics of questions about the metadata of buckets, and of searches of vectors.
import type { MetricRegistry } from "@platform/kernel/metrics";
import type { MetadataQuestions, MetadataQuestionsOptions } from "./metadata-questions.ts";
import type { VectorQuestions, VectorQuestionsOptions } from "./vector-questions.ts";

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

/** Registers the metrics. Returns the function that counts finished searches. */
export function createVectorObserver(
  registry: MetricRegistry,
  getQuestions: () => Pick<VectorQuestions, "waiting">,
): VectorQuestionsOptions["onFinished"] {
  const requests = registry.counter({
    name: "platform_vault_vector_requests_total",
    help: "Searches of vectors by their end; killed ones exceeded the limit of time, the clients of aborted ones had left.",
    labels: ["outcome"],
  });
  registry.collect({
    name: "vault-vector",
    collect: () => [
      gauge(
        "platform_vault_vector_waiting",
        "Searches of vectors that wait for their turn.",
        getQuestions().waiting,
      ),
    ],
  });
  return (outcome) => requests.with({ outcome }).add();
}

/** Registers the metric of plain questions. Returns the function that counts them. */
export function createAskCounter(
  registry: MetricRegistry,
): (outcome: "answered" | "refused") => void {
  const requests = registry.counter({
    name: "platform_vault_ask_requests_total",
    help: "Questions in plain words by their end. Their statements and searches count as questions about metadata and vectors, too.",
    labels: ["outcome"],
  });
  return (outcome) => requests.with({ outcome }).add();
}

/** Registers the metric of an endpoint for plain questions. Returns the function that counts its failures. */
export function createAskFailureCounter(registry: MetricRegistry): () => void {
  const failures = registry.counter({
    name: "platform_vault_ask_endpoint_failures_total",
    help: "Plain questions that the grammar answered because the configured endpoint failed or its filters were refused.",
  });
  return () => failures.add();
}

function gauge(name: string, help: string, value: number) {
  return { type: "gauge" as const, name, help, samples: [{ labels: [], value }] };
}
