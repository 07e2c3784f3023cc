// The figures of the admin feeds of mail.
import type { Figure } from "@platform/kernel/feeds";
import { sumSeries, type LabelPairs, type MetricRegistry } from "@platform/kernel/metrics";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { NOTIFY_METRICS } from "../metrics.ts";

/** The queue is counted by a query, so less often than the figures are sampled. */
const QUEUE_MS = 5_000;

/** Counts the queue in the background; `stop` ends it. */
export class QueueLength {
  /** NaN until it is known, and while the database does not answer. */
  value = Number.NaN;
  readonly #timer: RepeatingTimer;

  constructor(count: () => Promise<number>) {
    const read = async (): Promise<void> => {
      this.value = await count();
    };
    // The health check reports a database that does not answer.
    const forget = (): void => void (this.value = Number.NaN);
    this.#timer = every(QUEUE_MS, read, forget);
    void this.#timer.run();
  }

  /** Stops counting. */
  stop(): Promise<void> {
    return this.#timer.stop();
  }
}

/** The figures of the admin feeds. */
export function createFigures(registry: MetricRegistry, queue: QueueLength): Figure[] {
  const counter = (name: string, title: string, metric: string, ...accepted: string[]): Figure => ({
    name,
    unit: "1/s",
    title,
    kind: "counter",
    read: () => sumSeries(registry.find(metric), (labels) => hasStatus(labels, accepted)),
  });
  const { sent, bounces, suppressed, received, forwards } = NOTIFY_METRICS;
  return [
    counter("sent", "Messages delivered", sent, "sent"),
    counter("failed", "Deliveries that failed", sent, "failed", "bounced"),
    counter("bounces", "Bounces", bounces),
    counter("suppressed", "Deliveries that the suppression list prevented", suppressed),
    counter("received", "Messages received", received),
    counter("forwards", "Received messages forwarded to rules", forwards, "delivered"),
    {
      name: "queued",
      unit: "",
      title: "Deliveries in the queue",
      kind: "gauge",
      read: () => queue.value,
    },
  ];
}

// An empty list accepts every status.
function hasStatus(labels: LabelPairs, accepted: readonly string[]): boolean {
  if (accepted.length === 0) return true;
  return labels.some(([name, value]) => name === "status" && accepted.includes(value));
}
