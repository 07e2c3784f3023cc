// Answers to questions about the metadata of buckets.
import type { Service } from "@platform/chassis";
import type { VaultConfig } from "../config.ts";
import { MetadataQuestions } from "../search/metadata-questions.ts";
import { createSqlObserver } from "../search/search-metrics.ts";
import type { Storage } from "./storage.ts";

/** Creates the questions. Their processes start with the first one. */
export function openMetadataQuestions(
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
