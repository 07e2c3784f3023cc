// Paths of every service: probes, metrics, documentation.
import { HttpError } from "../error/http-error.ts";
import type { HealthAnswer, HealthRegistry } from "@platform/kernel/health";
import { checkLoopback, createDocsPage, createTokenCheck } from "@platform/kernel/http-parts";
import { METRICS_CONTENT_TYPE, type MetricRegistry } from "@platform/kernel/metrics";
import type { Secret } from "@platform/kernel/secrets";
import { buildOpenApi } from "../docs/openapi.ts";
import type { Call } from "../http/call.ts";
import type { RouteDefinition } from "../http/definition.ts";
import type { OwnPath } from "../http/handler.ts";
import { reply, type Reply } from "../result/reply.ts";

/** Options of {@link createOwnPaths}. */
export interface OwnPathsOptions {
  name: string;
  version: string;
  routes: readonly RouteDefinition[];
  health: HealthRegistry;
  metrics: MetricRegistry;
  /** Token for reading metrics from other machines. */
  metricsToken: Secret | undefined;
  /** True if the documentation is public; otherwise only programs on this machine may read it. */
  hasPublicDocs: boolean;
}

/** Creates the answers. */
export function createOwnPaths(options: OwnPathsOptions): Map<string, OwnPath> {
  const { name, version, routes, health, metrics, hasPublicDocs } = options;
  const checkToken = createTokenCheck(options.metricsToken, "metrics_token");
  const page = createDocsPage(name);
  const document = buildOpenApi({ title: name, version }, routes);
  const admitDocs = (call: Call): void => {
    if (!hasPublicDocs && !isLocal(call)) {
      throw new HttpError(403, "The documentation is open to programs on this machine only.");
    }
  };
  const fonts = [...page.fonts].map(([path, { body, headers }]): [string, OwnPath] => [
    path,
    (call) => {
      admitDocs(call);
      return reply(body, { headers });
    },
  ]);
  return new Map<string, OwnPath>([
    ...fonts,
    ["/healthz", () => answerProbe(health.live())],
    ["/readyz", async () => answerProbe(await health.ready())],
    [
      "/metrics",
      async (call) => {
        const { headers } = call;
        const get = (name: string): string | null => headers.get(name) ?? null;
        if (!isLocal(call)) checkToken({ headers: { get, has: (name) => headers.has(name) } });
        return reply(await metrics.render(), { headers: { "Content-Type": METRICS_CONTENT_TYPE } });
      },
    ],
    [
      "/api/docs",
      (call) => {
        admitDocs(call);
        return reply(page.html, { headers: page.headers });
      },
    ],
    [
      "/api/docs/openapi.json",
      (call) => {
        admitDocs(call);
        return document;
      },
    ],
  ]);
}

function answerProbe({ status, body }: HealthAnswer): Reply {
  return reply(body, { status, headers: { "Cache-Control": "no-store" } });
}

function isLocal({ peer, headers }: Call): boolean {
  return checkLoopback({ peer, getHeader: (name) => headers.get(name) }).allowed;
}
