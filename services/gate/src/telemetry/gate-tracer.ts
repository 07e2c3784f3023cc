// The tracer of the control plane.
import { createIdSource } from "@platform/kernel/ids";
import { systemClock } from "@platform/kernel/time";
import {
  type SpanCounts,
  type Tracer,
  createOtlpExporter,
  createTracer,
} from "@platform/kernel/trace";
import { GATE_VERSION, type GateConfig } from "../config/document.ts";

/** Its span counts are merged with those of the workers, not kept in the tracer's own registry. */
export function createGateTracer(config: GateConfig, counts: SpanCounts): Tracer {
  const { otlp_endpoint: endpoint } = config;
  const resource = { service: "gate", version: GATE_VERSION };
  return createTracer({
    ids: createIdSource(),
    clock: systemClock,
    exporter:
      endpoint === undefined ? undefined : createOtlpExporter({ endpoint, resource, counts }),
  });
}
