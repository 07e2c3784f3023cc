// Metrics of the MQTT server.
import type { Logger } from "@platform/kernel/log";
import type { Counter, MetricRegistry } from "@platform/kernel/metrics";
import type { WireListeners } from "../connection/listeners.ts";
import { WireMetrics } from "../connection/wire-metrics.ts";

/** Values read at each scrape. */
export interface MqttMetricSources {
  listeners: () => WireListeners;
  sessions: () => number;
  subscriptions: () => number;
  retained: () => number;
  published: () => number;
  dropped: () => number;
}

/** Counts packets by type; other values are read at each scrape. */
export class MqttMetrics extends WireMetrics {
  readonly #packets: Counter<"packet">;

  constructor(registry: MetricRegistry, log: Logger, sources: MqttMetricSources) {
    const { listeners, sessions, subscriptions, retained, published, dropped } = sources;
    super(registry, log, { name: "mqtt", title: "MQTT" }, listeners, [
      gauge("sessions", "MQTT sessions, with and without a connection.", sessions),
      gauge("subscriptions", "Subscriptions of MQTT sessions.", subscriptions),
      gauge("retained_messages", "Retained messages.", retained),
      gauge(
        "unsent_bytes",
        "Bytes that MQTT clients have not read.",
        () => listeners().unsentBytes,
      ),
      counter("messages_published_total", "Messages of MQTT clients.", published),
      counter("messages_dropped_total", "Messages with QoS 0 that were refused.", dropped),
    ]);
    this.#packets = registry.counter({
      name: "platform_pulse_mqtt_packets_total",
      help: "Packets of MQTT clients.",
      labels: ["packet"],
    });
  }

  countPacket(packet: string): void {
    this.#packets.with({ packet }).add(1);
  }
}

function gauge(name: string, help: string, read: () => number) {
  return { type: "gauge" as const, name, help, read };
}

function counter(name: string, help: string, read: () => number) {
  return { type: "counter" as const, name, help, read };
}
