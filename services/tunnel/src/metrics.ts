// Metrics of the relay.
import type { Counter, Histogram, MetricRegistry } from "@platform/kernel/metrics";

type CounterSeries = ReturnType<Counter["with"]>;
type HistogramSeries = ReturnType<Histogram["with"]>;

/** The relay's own metrics; names as specified. */
export interface RelayMetrics {
  readonly proxied: CounterSeries;
  readonly latencyMs: HistogramSeries;
  readonly reconnections: CounterSeries;
  /** Requests that the relay answered itself, by the code in `X-Platform-Tunnel-Error`. */
  countError(code: string): void;
  readonly bytesIn: CounterSeries;
  readonly bytesOut: CounterSeries;
}

/** Values that are read at each scrape. */
export interface RelayGauges {
  countClients(): number;
  countTunnels(): number;
  countStreams(): number;
  countCaptured(): number;
  heldBytes(): number;
}

/** Names of the metrics that the admin feeds show. */
export const RELAY_METRICS = {
  proxied: "platform_tunnel_requests_proxied_total",
  errors: "platform_tunnel_errors_total",
  bytes: "platform_tunnel_bytes_total",
} as const;

const LATENCY_BOUNDS_MS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000];

/** Creates the metrics in a registry. */
export function createRelayMetrics(registry: MetricRegistry, gauges: RelayGauges): RelayMetrics {
  const errors = registry.counter({
    name: RELAY_METRICS.errors,
    help: "Public requests that the relay answered with an error of its own, by code.",
    labels: ["code"],
  });
  const bytes = registry.counter({
    name: RELAY_METRICS.bytes,
    help: "Body bytes of public requests and connections; in is towards the local service.",
    labels: ["direction"],
  });
  addGauge(registry, "platform_tunnel_active_connections", "Connected clients.", () =>
    gauges.countClients(),
  );
  addGauge(registry, "platform_tunnel_active_tunnels", "Tunnels with a connected client.", () =>
    gauges.countTunnels(),
  );
  addGauge(registry, "platform_tunnel_active_streams", "Open streams of all clients.", () =>
    gauges.countStreams(),
  );
  addGauge(registry, "platform_tunnel_ring_buffer_size", "Captured requests of all tunnels.", () =>
    gauges.countCaptured(),
  );
  addGauge(
    registry,
    "platform_tunnel_held_bytes",
    "Received bytes that public clients have not accepted yet.",
    () => gauges.heldBytes(),
  );
  return {
    proxied: registry
      .counter({
        name: RELAY_METRICS.proxied,
        help: "Public requests that were answered by a local service.",
      })
      .with({}),
    latencyMs: registry
      .histogram({
        name: "platform_tunnel_request_latency_ms",
        help: "Time from a request's head to the end of its response.",
        bounds: LATENCY_BOUNDS_MS,
      })
      .with({}),
    reconnections: registry
      .counter({
        name: "platform_tunnel_reconnections_total",
        help: "Connections of clients that had been connected before.",
      })
      .with({}),
    countError: (code) => errors.with({ code }).add(),
    bytesIn: bytes.with({ direction: "in" }),
    bytesOut: bytes.with({ direction: "out" }),
  };
}

function addGauge(registry: MetricRegistry, name: string, help: string, read: () => number): void {
  registry.collect({
    name,
    collect: () => [{ type: "gauge", name, help, samples: [{ labels: [], value: read() }] }],
  });
}
