// Metrics of the STOMP server.
import type { Logger } from "@platform/kernel/log";
import type { Counter, MetricRegistry } from "@platform/kernel/metrics";
import type { WireListeners } from "../connection/listeners.ts";
import { WireMetrics } from "../connection/wire-metrics.ts";
import { isCommand } from "./commands.ts";

/** Values read at each scrape. */
export interface StompMetricSources {
  listeners: () => WireListeners;
  subscriptions: () => number;
  messages: () => number;
}

/** Counts frames and throttled clients; other values are read at each scrape. */
export class StompMetrics extends WireMetrics {
  readonly #frames: Counter<"command">;
  readonly #throttled: Counter;

  constructor(registry: MetricRegistry, log: Logger, sources: StompMetricSources) {
    const { listeners, subscriptions, messages } = sources;
    super(registry, log, { name: "stomp", title: "STOMP" }, listeners, [
      {
        type: "gauge",
        name: "subscriptions",
        help: "Subscriptions of STOMP clients.",
        read: subscriptions,
      },
      {
        type: "gauge",
        name: "unsent_bytes",
        help: "Bytes that STOMP clients on TCP and TLS have not read.",
        read: () => listeners().unsentBytes,
      },
      {
        type: "counter",
        name: "messages_total",
        help: "Messages of STOMP clients.",
        read: messages,
      },
    ]);
    this.#frames = registry.counter({
      name: "platform_pulse_stomp_frames_total",
      help: "Frames of STOMP clients.",
      labels: ["command"],
    });
    this.#throttled = registry.counter({
      name: "platform_pulse_stomp_throttled_total",
      help: "Delays of STOMP clients over their tenant's quota.",
      labels: [],
    });
  }

  /** Unknown commands have one series. */
  countFrame(command: string): void {
    this.#frames.with({ command: isCommand(command) ? command : "other" }).add(1);
  }

  countThrottled(): void {
    this.#throttled.with({}).add(1);
  }
}
