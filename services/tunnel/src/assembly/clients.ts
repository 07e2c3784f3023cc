// Connected clients and the requests captured of them, with their metrics.
import type { Service } from "@platform/chassis";
import { CaptureStore } from "../capture/capture-store.ts";
import type { RelayConfig } from "../config.ts";
import { ReceiveBudget } from "../frame/receive-budget.ts";
import { createRelayMetrics, type RelayGauges, type RelayMetrics } from "../metrics.ts";
import { Hub } from "../relay/hub.ts";

/** The parts. */
export interface Clients {
  readonly hub: Hub;
  readonly capture: CaptureStore;
  readonly budget: ReceiveBudget;
  readonly gauges: RelayGauges;
  readonly metrics: RelayMetrics;
}

/** Creates the parts. */
export function openClients(config: RelayConfig, { clock, metrics }: Service): Clients {
  const hub = new Hub(clock);
  const budget = new ReceiveBudget();
  const capture = new CaptureStore({
    requestsMax: config.max_ring_buffer,
    bytesMax: config.capture_bytes_max,
  });
  const gauges: RelayGauges = {
    countClients: () => hub.clients,
    countTunnels: () => hub.tunnels,
    countStreams: () => hub.streams,
    countCaptured: () => capture.size,
    heldBytes: () => budget.heldBytes,
  };
  return { hub, capture, budget, gauges, metrics: createRelayMetrics(metrics, gauges) };
}
