// Metrics of the STOMP server.
import type { Counter, MetricRegistry } from "@platform/kernel/metrics";
import type { StompErrorKind } from "./frame/stomp-error.ts";

/** Commands with a series of their own; others are counted as `other`. */
const COMMANDS: ReadonlySet<string> = new Set([
  "CONNECT",
  "STOMP",
  "SEND",
  "SUBSCRIBE",
  "UNSUBSCRIBE",
  "ACK",
  "NACK",
  "BEGIN",
  "COMMIT",
  "ABORT",
  "DISCONNECT",
]);

/** Values read at each scrape. */
export interface StompMetricSources {
  connections: () => number;
  refusedConnections: () => number;
  subscriptions: () => number;
  /** Bytes that clients on TCP and TLS have not read. */
  unsentBytes: () => number;
  messages: () => number;
}

/** Counts frames, faults and throttled clients; other values are read at each scrape. */
export class StompMetrics {
  readonly #frames: Counter<"command">;
  readonly #faults: Counter<"kind">;
  throttled = 0;

  constructor(registry: MetricRegistry, sources: StompMetricSources) {
    this.#frames = registry.counter({
      name: "platform_pulse_stomp_frames_total",
      help: "Frames of STOMP clients.",
      labels: ["command"],
    });
    this.#faults = registry.counter({
      name: "platform_pulse_stomp_faults_total",
      help: "STOMP connections that the broker closed, by reason.",
      labels: ["kind"],
    });
    registry.collect({
      name: "pulse-stomp",
      collect: () => [
        sample("gauge", "connections", "STOMP connections.", sources.connections()),
        sample(
          "gauge",
          "subscriptions",
          "Subscriptions of STOMP clients.",
          sources.subscriptions(),
        ),
        sample(
          "gauge",
          "unsent_bytes",
          "Bytes that STOMP clients on TCP and TLS have not read.",
          sources.unsentBytes(),
        ),
        sample(
          "counter",
          "refused_connections_total",
          "STOMP connections over a limit, in all or of one address, closed immediately.",
          sources.refusedConnections(),
        ),
        sample("counter", "messages_total", "Messages of STOMP clients.", sources.messages()),
        sample(
          "counter",
          "throttled_total",
          "Delays of STOMP clients over their tenant's quota.",
          this.throttled,
        ),
      ],
    });
  }

  countFrame(command: string): void {
    this.#frames.with({ command: COMMANDS.has(command) ? command : "other" }).add(1);
  }

  countFault(kind: StompErrorKind): void {
    this.#faults.with({ kind: kind.replace("-", "_") }).add(1);
  }
}

function sample(type: "gauge" | "counter", name: string, help: string, value: number) {
  return { type, name: `platform_pulse_stomp_${name}`, help, samples: [{ labels: [], value }] };
}
