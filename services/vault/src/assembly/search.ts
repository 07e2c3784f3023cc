// Answers to questions about the metadata of buckets, and searches of vectors.
import type { Service } from "@platform/chassis";
import type { VaultConfig } from "../config.ts";
import { MetadataQuestions } from "../search/metadata-questions.ts";
import { AskEndpoint } from "../search/ask/endpoint.ts";
import {
  createAskCounter,
  createAskFailureCounter,
  createSqlObserver,
  createVectorObserver,
} from "../search/search-metrics.ts";
import { VectorQuestions } from "../search/vector-questions.ts";
import type { Storage } from "./storage.ts";

/** Creates what answers questions about metadata, vectors and plain questions. */
export function openSearch(config: VaultConfig, service: Service, storage: Storage) {
  return {
    metadata: openMetadataQuestions(config, service, storage),
    vectors: openVectorQuestions(config, service),
    countAsk: createAskCounter(service.metrics),
    askEndpoint: openAskEndpoint(config, service),
    embedsByModel: config.embedding_url !== undefined,
  };
}

// Their processes start with the first question.
function openMetadataQuestions(
  { sql_timeout_ms: timeoutMs }: VaultConfig,
  { metrics, lifecycle }: Service,
  { store }: Storage,
): MetadataQuestions {
  const questions: MetadataQuestions = new MetadataQuestions({
    store,
    timeoutMs,
    onFinished: createSqlObserver(metrics, () => questions),
  });
  lifecycle.onDrain("questions about metadata", () => questions.close());
  return questions;
}

// Their thread starts with the first search.
function openVectorQuestions(
  { sql_timeout_ms: timeoutMs, vector_memory: memoryBytes }: VaultConfig,
  { metrics, lifecycle }: Service,
): VectorQuestions {
  const questions: VectorQuestions = new VectorQuestions({
    memoryBytes,
    timeoutMs,
    onFinished: createVectorObserver(metrics, () => questions),
  });
  lifecycle.onDrain("searches of vectors", () => questions.close());
  return questions;
}

// Undefined if no endpoint is configured.
function openAskEndpoint(
  { ask_url: url, ask_model: model, ask_key: key }: VaultConfig,
  { clock, log, metrics }: Service,
): AskEndpoint | undefined {
  if (url === undefined) return undefined;
  const countFailure = createAskFailureCounter(metrics);
  const onFailed = (error: unknown): void => {
    countFailure();
    log.warn("the grammar answers a question that the endpoint did not interpret", { error });
  };
  return new AskEndpoint({ endpoint: { url, model, key }, clock, onFailed });
}
