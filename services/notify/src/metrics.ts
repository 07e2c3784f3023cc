// Metrics of the mail service in addition to those of every service.
import type { MetricRegistry } from "@platform/kernel/metrics";
import type { InboundKind, InboundStatus } from "./database/inbound.ts";
import type { Channel, DeliveryStatus } from "./database/message.ts";

const LATENCY_BOUNDS_MS = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000, 600_000, 3_600_000,
];

/** Names of the metrics that the admin feeds show. */
export const NOTIFY_METRICS = {
  sent: "platform_notify_sent_total",
  bounces: "platform_notify_bounces_total",
  suppressed: "platform_notify_suppressed_total",
  received: "platform_notify_inbound_received_total",
  forwards: "platform_notify_inbound_forwards_total",
} as const;

/** Counters of the service. */
export interface NotifyMetrics {
  /** Counts a delivery that reached a status. */
  countSent(channel: Channel, status: DeliveryStatus): void;
  countBounce(type: "hard" | "soft"): void;
  countSuppressed(count: number): void;
  /** Records the time from acceptance to delivery. */
  observeLatency(ms: number): void;
  countRendered(): void;
  /** Counts an open or a click; automatic ones are no events. */
  countTracked(type: "opened" | "clicked", isAutomatic: boolean): void;
  /** Counts an address that unsubscribed from bulk mail. */
  countUnsubscribed(): void;
  /** Counts a received message. */
  countReceived(kind: InboundKind, status: InboundStatus): void;
  /** Counts forwards of received messages to rules. */
  countRouted(count: number): void;
  /** Counts an attempt to forward a received message. */
  countForward(status: "pending" | "delivered" | "failed"): void;
}

/** Values that are read at each scrape. */
export interface NotifyGauges {
  readonly templates: { count(): Promise<number> };
  /** Deliveries that have not ended, and those of them that have failed. */
  readonly queue: { countOpen(): Promise<number>; countRetrying(): Promise<number> };
}

/** Registers the counters. */
export function createNotifyMetrics(registry: MetricRegistry): NotifyMetrics {
  const sent = registry.counter({
    name: NOTIFY_METRICS.sent,
    help: "Deliveries by channel and status.",
    labels: ["channel", "status"],
  });
  const bounces = registry.counter({
    name: NOTIFY_METRICS.bounces,
    help: "Bounces: hard ones are permanent, soft ones temporary.",
    labels: ["type"],
  });
  // Both series exist from the start, so that rates of the first bounces are right.
  for (const type of ["hard", "soft"]) bounces.with({ type }).add(0);
  const suppressed = registry.counter({
    name: NOTIFY_METRICS.suppressed,
    help: "Deliveries that the suppression list prevented.",
  });
  const latency = registry.histogram({
    name: "platform_notify_delivery_latency_ms",
    help: "Time from the acceptance of a message to its delivery in milliseconds.",
    bounds: LATENCY_BOUNDS_MS,
  });
  const rendered = registry.counter({
    name: "platform_notify_templates_rendered_total",
    help: "Rendered templates.",
  });
  const unsubscribed = registry.counter({
    name: "platform_notify_unsubscribed_total",
    help: "Addresses that unsubscribed from bulk mail by a link.",
  });
  const tracked = registry.counter({
    name: "platform_notify_tracked_total",
    help: "Opens and clicks of tracked messages: by readers, and automatic ones, which are no events.",
    labels: ["type", "source"],
  });
  const received = registry.counter({
    name: NOTIFY_METRICS.received,
    help: "Received messages by kind and status.",
    labels: ["kind", "status"],
  });
  const routed = registry.counter({
    name: "platform_notify_inbound_routed_total",
    help: "Received messages that matched a rule, once per rule.",
  });
  const forwards = registry.counter({
    name: NOTIFY_METRICS.forwards,
    help: "Attempts to forward received messages; pending ones are repeated.",
    labels: ["status"],
  });
  return {
    countSent: (channel, status) => sent.with({ channel, status }).add(),
    countBounce: (type) => bounces.with({ type }).add(),
    countSuppressed: (count) => suppressed.add(count),
    observeLatency: (ms) => latency.observe(ms),
    countRendered: () => rendered.add(),
    countTracked: (type, isAutomatic) =>
      tracked.with({ type, source: isAutomatic ? "automatic" : "reader" }).add(),
    countUnsubscribed: () => unsubscribed.add(),
    countReceived: (kind, status) => received.with({ kind, status }).add(),
    countRouted: (count) => routed.add(count),
    countForward: (status) => forwards.with({ status }).add(),
  };
}

/** Registers the gauges. */
export function collectGauges(registry: MetricRegistry, gauges: NotifyGauges): void {
  registry.collect({
    name: "notify",
    collect: async () => [
      {
        name: "platform_notify_templates_active",
        help: "Templates in the store.",
        type: "gauge",
        samples: [{ labels: [], value: await gauges.templates.count() }],
      },
      {
        name: "platform_notify_queued",
        help: "Deliveries that have not ended.",
        type: "gauge",
        samples: [{ labels: [], value: await gauges.queue.countOpen() }],
      },
      {
        name: "platform_notify_retrying",
        help: "Of the queued deliveries, those that have failed and are tried again.",
        type: "gauge",
        samples: [{ labels: [], value: await gauges.queue.countRetrying() }],
      },
    ],
  });
}
