// Metrics of the MQTT server.
import type { Counter, MetricRegistry } from "@platform/kernel/metrics";

/** Values read at each scrape. */
export interface MqttMetricSources {
  connections: () => number;
  refusedConnections: () => number;
  sessions: () => number;
  subscriptions: () => number;
  retained: () => number;
  unsentBytes: () => number;
  published: () => number;
  dropped: () => number;
}

/** Counts packets by type and faults by kind; other values are read at each scrape. */
export class MqttMetrics {
  readonly #packets: Counter<"packet">;
  readonly #faults: Counter<"kind">;

  constructor(registry: MetricRegistry, sources: MqttMetricSources) {
    this.#packets = registry.counter({
      name: "platform_pulse_mqtt_packets_total",
      help: "Packets of MQTT clients.",
      labels: ["packet"],
    });
    this.#faults = registry.counter({
      name: "platform_pulse_mqtt_faults_total",
      help: "MQTT connections that the broker closed, by reason code or kind.",
      labels: ["kind"],
    });
    const gauges: [name: string, help: string, read: () => number][] = [
      ["connections", "MQTT connections.", sources.connections],
      ["sessions", "MQTT sessions, with and without a connection.", sources.sessions],
      ["subscriptions", "Subscriptions of MQTT sessions.", sources.subscriptions],
      ["retained_messages", "Retained messages.", sources.retained],
      ["unsent_bytes", "Bytes that MQTT clients have not read.", sources.unsentBytes],
    ];
    const counters: [name: string, help: string, read: () => number][] = [
      ["messages_published_total", "Messages of MQTT clients.", sources.published],
      ["messages_dropped_total", "Messages with QoS 0 that were refused.", sources.dropped],
      [
        "refused_connections_total",
        "MQTT connections over a limit, closed immediately.",
        sources.refusedConnections,
      ],
    ];
    registry.collect({
      name: "pulse-mqtt",
      collect: () => [
        ...gauges.map(([name, help, read]) => toFamily("gauge", name, help, read())),
        ...counters.map(([name, help, read]) => toFamily("counter", name, help, read())),
      ],
    });
  }

  countPacket(packet: string): void {
    this.#packets.with({ packet }).add(1);
  }

  countFault(kind: string): void {
    this.#faults.with({ kind }).add(1);
  }
}

function toFamily(type: "gauge" | "counter", name: string, help: string, value: number) {
  return { type, name: `platform_pulse_mqtt_${name}`, help, samples: [{ labels: [], value }] };
}
