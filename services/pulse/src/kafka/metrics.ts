// Metrics of the Kafka server.
import {
  DURATION_BOUNDS_SECONDS,
  type Counter,
  type Histogram,
  type MetricRegistry,
} from "@platform/kernel/metrics";
import type { ConnectionFault } from "./server/connection-context.ts";

/** Values read at each scrape. */
export interface KafkaMetricSources {
  connections: () => number;
  refusedConnections: () => number;
  /** Bytes of answers that clients have not read. */
  responseBytes: () => number;
  /** Records written by Kafka clients. */
  records: () => number;
}

/** Counts requests with their durations, and faults by kind; other values are read at each scrape. */
export class KafkaMetrics {
  readonly #requests: Histogram<"request">;
  readonly #surplus: Counter<"request">;
  readonly #faults: Counter<"kind">;

  constructor(registry: MetricRegistry, sources: KafkaMetricSources) {
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
    this.#faults = registry.counter({
      name: "platform_pulse_kafka_faults_total",
      help: "Kafka connections that the broker closed, by reason.",
      labels: ["kind"],
    });
    registry.collect({
      name: "pulse-kafka",
      collect: () => [
        gauge("platform_pulse_kafka_connections", "Kafka connections.", sources.connections()),
        gauge(
          "platform_pulse_kafka_response_bytes",
          "Bytes of answers that Kafka clients have not read.",
          sources.responseBytes(),
        ),
        counter(
          "platform_pulse_kafka_refused_connections_total",
          "Kafka connections over a limit, in all or of one address, closed immediately.",
          sources.refusedConnections(),
        ),
        counter(
          "platform_pulse_kafka_records_total",
          "Records written by Kafka clients.",
          sources.records(),
        ),
      ],
    });
  }

  observeRequest(request: string, durationMs: number): void {
    this.#requests.with({ request }).observe(durationMs / 1000);
  }

  countSurplus(request: string): void {
    this.#surplus.with({ request }).add(1);
  }

  countFault(kind: ConnectionFault["kind"]): void {
    this.#faults.with({ kind: kind.replace("-", "_") }).add(1);
  }
}

function counter(name: string, help: string, value: number) {
  return { type: "counter" as const, name, help, samples: [{ labels: [], value }] };
}

function gauge(name: string, help: string, value: number) {
  return { type: "gauge" as const, name, help, samples: [{ labels: [], value }] };
}
