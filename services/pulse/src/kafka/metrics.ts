// Metrics of the Kafka server.
import type { Logger } from "@platform/kernel/log";
import {
  DURATION_BOUNDS_SECONDS,
  type Counter,
  type Histogram,
  type MetricRegistry,
} from "@platform/kernel/metrics";
import { WireMetrics } from "../connection/wire-metrics.ts";
import type { KafkaListeners } from "./server/listener.ts";

/** Values read at each scrape. */
export interface KafkaMetricSources {
  listeners: () => KafkaListeners;
  /** Records written by Kafka clients. */
  records: () => number;
}

/** Counts requests with their durations; other values are read at each scrape. */
export class KafkaMetrics extends WireMetrics {
  readonly #requests: Histogram<"request">;
  readonly #surplus: Counter<"request">;

  constructor(registry: MetricRegistry, log: Logger, { listeners, records }: KafkaMetricSources) {
    super(registry, log, { name: "kafka", title: "Kafka" }, listeners, [
      {
        type: "gauge",
        name: "response_bytes",
        help: "Bytes of answers that Kafka clients have not read.",
        read: () => listeners().responseBytes,
      },
      {
        type: "counter",
        name: "records_total",
        help: "Records written by Kafka clients.",
        read: records,
      },
    ]);
    this.#requests = registry.histogram({
      name: "platform_pulse_kafka_request_duration_seconds",
      help: "Time from a Kafka request to its answer, including waits of Fetch and JoinGroup.",
      labels: ["request"],
      bounds: DURATION_BOUNDS_SECONDS,
    });
    this.#surplus = registry.counter({
      name: "platform_pulse_kafka_surplus_requests_total",
      help: "Kafka requests followed by surplus bytes in their frame, which were ignored.",
      labels: ["request"],
    });
  }

  observeRequest(request: string, durationMs: number): void {
    this.#requests.with({ request }).observe(durationMs / 1000);
  }

  countSurplus(request: string): void {
    this.#surplus.with({ request }).add(1);
  }
}
