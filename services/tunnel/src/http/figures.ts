// The figures of the admin feeds of the relay.
import type { Figure } from "@platform/kernel/feeds";
import { sumSeries, type MetricRegistry } from "@platform/kernel/metrics";
import { RELAY_METRICS, type RelayGauges } from "../metrics.ts";

export function createFigures(registry: MetricRegistry, gauges: RelayGauges): Figure[] {
  const counter = (name: string, unit: string, title: string, metric: string, label?: string) => ({
    name,
    unit,
    title,
    kind: "counter" as const,
    read: () =>
      sumSeries(registry.find(metric), (labels) =>
        labels.every(([, value]) => label === undefined || value === label),
      ),
  });
  const gauge = (name: string, unit: string, title: string, read: () => number) => ({
    name,
    unit,
    title,
    kind: "gauge" as const,
    read,
  });
  const { proxied, errors, bytes } = RELAY_METRICS;
  return [
    counter("requests", "1/s", "Public requests answered by local services", proxied),
    counter("errors", "1/s", "Public requests answered with an error of the relay", errors),
    counter("bytes_in", "bytes/s", "Bytes to local services", bytes, "in"),
    counter("bytes_out", "bytes/s", "Bytes from local services", bytes, "out"),
    gauge("clients", "", "Connected clients", () => gauges.countClients()),
    gauge("tunnels", "", "Tunnels with a connected client", () => gauges.countTunnels()),
    gauge("streams", "", "Open streams", () => gauges.countStreams()),
    gauge("held", "bytes", "Received bytes not yet accepted by public clients", () =>
      gauges.heldBytes(),
    ),
  ];
}
