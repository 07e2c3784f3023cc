// The gateway's API.
import type { Operation, Service } from "@platform/chassis";
import type { Api, ApiRoute, JsonObject } from "@platform/kernel/http";
import { MetricRegistry } from "@platform/kernel/metrics";
import type { RouteSeries } from "../telemetry/route-series.ts";
import type { OidcSignIn } from "../sign-in/oidc-sign-in.ts";
import type { MetricsStream } from "../telemetry/metrics-stream.ts";
import type { SourceView } from "../source/source-view.ts";
import type { CertificateManager } from "../acme/certificate-manager.ts";
import type { AccessControl } from "../access/access-control.ts";
import type { AiBudgets } from "../control/ai-budgets.ts";
import type { AiFigures } from "../control/ai-figures.ts";
import type { AiLedger } from "../control/ai-ledger.ts";
import type { MiddlewareStore } from "../control/middleware-store.ts";
import type { Certificates } from "../control/certificates.ts";
import { createAccessLogRoutes } from "./access-log-api.ts";
import { createAiBillingRoutes } from "./ai-billing-api.ts";
import { createAdminRoutes } from "./admin-api.ts";
import { createCertificateRoutes } from "./certificates-api.ts";
import { createApiKeyRoutes } from "./api-keys-api.ts";
import { createCanaryRoutes } from "./canary-api.ts";
import { createConsoleRoutes } from "./console-api.ts";
import { createConsoleRedirects, createIndexRoute } from "./index-api.ts";
import { describeRoutes } from "./openapi.ts";
import { createRegisterRoute } from "./register-api.ts";
import { createMiddlewareRoutes } from "./middleware-api.ts";
import { createPolicyRoutes } from "./policy-api.ts";
import { createSignInRoutes } from "./sign-in-api.ts";
import { ADMIN_SCOPE, READ_SCOPE } from "./request.ts";
import { createGitopsRoute, type GitopsOptions } from "./gitops-api.ts";
import { createSourceRoutes } from "./sources-api.ts";
import { createRouteSeriesRoutes } from "./route-series-api.ts";
import { type RoutesApiOptions, createRouteRoutes } from "./routes-api.ts";
import { createUpstreamRoutes } from "./upstreams-api.ts";

/** Options of {@link createGateApi}. */
export type GateApiOptions = RoutesApiOptions & {
  service: Service;
  operation: Operation;
  stream: MetricsStream;
  series: RouteSeries;
  access: AccessControl;
  certificates: Certificates;
  /** Undefined without automatic certificates. */
  automatic: { readonly manager: CertificateManager } | undefined;
  signIn: OidcSignIn;
  gitops: GitopsOptions;
  listSources: () => readonly SourceView[];
  middleware: MiddlewareStore;
  ai: { readonly figures: AiFigures; readonly ledger: AiLedger; readonly budgets: AiBudgets };
  /** Address of the web console; undefined without one. */
  readConsoleUrl: () => string | undefined;
};

// The workers decide: they admit holders of `gate:read` to reading and of `gate:admin` to everything.
function withRequirement(route: ApiRoute): ApiRoute {
  if (route.requires !== undefined) return route;
  if (!route.path.startsWith("/api/")) return { ...route, requires: "public" };
  return { ...route, requires: route.method === "GET" ? [READ_SCOPE, ADMIN_SCOPE] : [ADMIN_SCOPE] };
}

// As for all paths, the workers decide on the documentation.
function declareReading(document: JsonObject): JsonObject {
  const paths = { ...(document["paths"] as Record<string, { get?: JsonObject }>) };
  for (const path of ["/api/docs", "/api/docs/openapi.json"])
    paths[path] = { get: { ...paths[path]?.get, "x-requires": [READ_SCOPE, ADMIN_SCOPE] } };
  return { ...document, paths };
}

export function createGateApi(options: GateApiOptions): Api {
  const { service, operation, controller } = options;
  const { clock, metrics } = service;
  return service.createApi({
    title: "Gateway",
    operation,
    routes: [
      ...createRouteRoutes(options),
      createRegisterRoute(controller),
      ...createConsoleRoutes(options),
      ...createAdminRoutes(options),
      ...createAiBillingRoutes({ ...options.ai, readTimeMs: Date.now }),
      ...createUpstreamRoutes(options),
      ...createRouteSeriesRoutes(options.planner, options.series),
      ...createAccessLogRoutes(controller),
      ...createCertificateRoutes({
        certificates: options.certificates,
        automatic: options.automatic?.manager,
        clock,
      }),
      createGitopsRoute(options.gitops),
      ...createSourceRoutes(options.listSources, clock),
      ...createCanaryRoutes(options),
      ...createApiKeyRoutes(options.access),
      ...createMiddlewareRoutes(options.middleware),
      ...createPolicyRoutes(options.access),
      ...createSignInRoutes(options.signIn),
      createIndexRoute(() => controller.state.config.index_file),
      ...createConsoleRedirects(options.readConsoleUrl),
    ].map(withRequirement),
    metrics: new ScrapeRegistry(metrics),
    extendOpenApi: (document) => describeRoutes(declareReading(document), controller.state),
  });
}

/**
 * Renders another registry. The workers already count all requests, including those of internal routes: the metrics that
 * the API framework registers itself would count them twice.
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
