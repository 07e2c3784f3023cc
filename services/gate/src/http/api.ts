// The gateway's API: the shared frame of every service's API around the gateway's own operations.
import { createApi } from "@platform/kernel/http";
import type { Api, ApiOptions } from "@platform/kernel/http";
import { MetricRegistry } from "@platform/kernel/metrics";
import { gateVersion } from "../config/document.ts";
import type { MetricsStream } from "../control/metrics-stream.ts";
import { listAdminOperations } from "./admin-api.ts";
import { listConsoleOperations } from "./console-api.ts";
import { describeRoutes } from "./openapi.ts";
import { createWorkerGuard } from "./request.ts";
import { listRoutesOperations } from "./routes-api.ts";
import type { RoutesApiParts } from "./routes-api.ts";

/** What the API works with. */
export type GateApiParts = RoutesApiParts &
  Pick<ApiOptions, "clock" | "health" | "logger" | "tracer"> & {
    /** What `/metrics` shows. */
    registry: MetricRegistry;
    stream: MetricsStream;
    /** Asked for with every request; the workers know it. */
    secret: string;
  };

/** Builds the API. */
export function createGateApi(parts: GateApiParts): Api {
  const { clock, health, logger, tracer, registry, controller } = parts;
  return createApi({
    service: "gate",
    title: "Gateway",
    version: gateVersion,
    routes: [
      ...listRoutesOperations(parts),
      ...listConsoleOperations(parts),
      ...listAdminOperations(parts),
    ],
    guard: createWorkerGuard(parts.secret),
    clock,
    health,
    logger,
    tracer,
    metrics: new ScrapeRegistry(registry),
    extendOpenApi: (document) => describeRoutes(document, controller.state),
  });
}

/**
 * Shows another registry. The workers count every request, those for own paths too: what the frame counts of the API
 * would be counted twice beside it.
 */
class ScrapeRegistry extends MetricRegistry {
  readonly #shown: MetricRegistry;

  constructor(shown: MetricRegistry) {
    super();
    this.#shown = shown;
  }

  override render(): Promise<string> {
    return this.#shown.render();
  }
}
