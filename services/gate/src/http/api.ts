// The gateway's API: the shared frame of every service's API around the gateway's own operations.
import { type Api, type ApiOptions, createApi } from "@platform/kernel/http";
import { MetricRegistry } from "@platform/kernel/metrics";
import { GATE_VERSION } from "../config/document.ts";
import type { MetricsStream } from "../control/metrics-stream.ts";
import { createAdminRoutes } from "./admin-api.ts";
import { createConsoleRoutes } from "./console-api.ts";
import { describeRoutes } from "./openapi.ts";
import { createWorkerGuard } from "./request.ts";
import { type RoutesApiOptions, createRouteRoutes } from "./routes-api.ts";

/** What the API works with. */
export type GateApiOptions = RoutesApiOptions &
  Pick<ApiOptions, "clock" | "health" | "logger" | "tracer"> & {
    /** What `/metrics` shows. */
    registry: MetricRegistry;
    stream: MetricsStream;
    /** Asked for with every request; the workers know it. */
    secret: string;
  };

/** Builds the API. */
export function createGateApi(options: GateApiOptions): Api {
  const { clock, health, logger, tracer, registry, controller } = options;
  return createApi({
    service: "gate",
    title: "Gateway",
    version: GATE_VERSION,
    routes: [
      ...createRouteRoutes(options),
      ...createConsoleRoutes(options),
      ...createAdminRoutes(options),
    ],
    guard: createWorkerGuard(options.secret),
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
