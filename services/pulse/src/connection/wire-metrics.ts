// Metrics and log lines that the servers of all wire protocols have.
import type { Logger } from "@platform/kernel/log";
import type { Counter, MetricRegistry } from "@platform/kernel/metrics";

/** A value read at each scrape. */
export interface MetricSource {
  type: "gauge" | "counter";
  /** Without the prefix of the protocol. */
  name: string;
  help: string;
  read: () => number;
}

/** Why a server closed a connection. */
export interface WireFault {
  kind: string;
  remoteAddress: string;
  reason: string;
  error?: unknown;
}

/** A wire protocol: `name` in metrics, `title` in texts. */
export interface WireProtocol {
  name: "kafka" | "mqtt" | "stomp";
  title: string;
}

/** The counts of listeners. */
interface ListenerCounts {
  readonly connectionCount: number;
  readonly refusedCount: number;
}

/** Counts and reports faults; other values are read at each scrape. */
export class WireMetrics {
  readonly #protocol: WireProtocol;
  readonly #log: Logger;
  readonly #faults: Counter<"kind">;

  /** `listeners` is called at scrapes. */
  constructor(
    registry: MetricRegistry,
    log: Logger,
    protocol: WireProtocol,
    listeners: () => ListenerCounts,
    sources: readonly MetricSource[],
  ) {
    const { name, title } = protocol;
    const prefix = `platform_pulse_${name}`;
    this.#protocol = protocol;
    this.#log = log;
    this.#faults = registry.counter({
      name: `${prefix}_faults_total`,
      help: `${title} connections that the broker closed, by reason.`,
      labels: ["kind"],
    });
    const all: MetricSource[] = [
      {
        type: "gauge",
        name: "connections",
        help: `${title} connections.`,
        read: () => listeners().connectionCount,
      },
      {
        type: "counter",
        name: "refused_connections_total",
        help: `${title} connections over a limit, in all or of one address, closed immediately.`,
        read: () => listeners().refusedCount,
      },
      ...sources,
    ];
    registry.collect({
      name: `pulse-${name}`,
      collect: () =>
        all.map(({ type, name: ownName, help, read }) => ({
          type,
          name: `${prefix}_${ownName}`,
          help,
          samples: [{ labels: [], value: read() }],
        })),
    });
  }

  /** Counts and logs that a connection was closed because of the client, or of an error in this process. */
  noteFault({ kind, ...details }: WireFault): void {
    const { title } = this.#protocol;
    this.#faults.with({ kind: kind.replace("-", "_") }).add(1);
    if (kind === "internal") this.#log.error(`a request of a client of ${title} failed`, details);
    else this.#log.info(`a connection of ${title} was closed`, { kind, ...details });
  }
}
