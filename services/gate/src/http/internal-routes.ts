// The closed list of internal routes, with their current and legacy paths.
import { type ConsoleSpec, type InternalRoute, SIGN_IN_PATH } from "../shared-state/index.ts";

const LEGACY_PREFIX = "/api/";
const CURRENT_PREFIX = "/api/v1/";
const DOCS_PATH = "/api/docs";

const PROBES: readonly InternalRoute[] = [
  { path: "/healthz", match: "exact", access: "probe" },
  { path: "/readyz", match: "exact", access: "probe" },
];

const VERSIONED: readonly string[] = [
  "routes",
  "routes/register",
  "routes/check",
  "admin/middleware",
  "admin/connections",
  "admin/access-log",
  "admin/access-log/ws",
  "admin/certificates",
  "admin/sources",
  "admin/upstreams",
  "admin/route-series",
  "admin/changes",
  "admin/cache",
  "admin/policy/reload",
  "admin/policy/revoke",
  "admin/api-keys",
  "admin/ai-billing",
  "admin/ai-cost-attribution",
  "admin/metrics/ws",
  "admin/series",
  "admin/attention",
  "admin/live",
  "admin/console/sync",
  "admin/reload",
];

const VERSIONED_BELOW: readonly string[] = [
  "admin/middleware/",
  "admin/api-keys/",
  "admin/canary/",
  "admin/certificates/",
  "admin/traces/",
];

const SIGN_IN: InternalRoute = { path: SIGN_IN_PATH, match: "below", access: "public" };

/** Routes of the console on the main listener. */
const CONSOLE: readonly InternalRoute[] = [
  { path: "/ui", match: "exact", access: "console" },
  { path: "/ui/", match: "below", access: "console" },
  { path: "/console/", match: "below", access: "console" },
  { path: "/svc/", match: "below", access: "console" },
];

/** The root of a host of its own, which leads to its page. */
const CONSOLE_ROOT: InternalRoute = { path: "/", match: "exact", access: "console" };

/** Lists the internal routes of the main listener; `of` says what it serves besides probes and sign-in. */
export function listMainRoutes(of: {
  admin: boolean;
  hasSignedWebhook: boolean;
  console: ConsoleSpec | undefined;
}): InternalRoute[] {
  const routes = listInternalRoutes(of.admin ? "all" : "probes", of.hasSignedWebhook);
  if (of.console === undefined) return routes;
  return [...routes, ...CONSOLE, ...(of.console.ownsHosts ? [CONSOLE_ROOT] : [])];
}

/**
 * Lists all internal routes, or only the probes and sign-in for a listener without the admin API. A signed webhook is open to
 * all, because it checks signatures itself.
 */
export function listInternalRoutes(
  scope: "all" | "probes",
  hasSignedWebhook = false,
): InternalRoute[] {
  if (scope === "probes") return [...PROBES, SIGN_IN];
  const admin = (path: string, match: InternalRoute["match"]): InternalRoute => ({
    path,
    match,
    access: "admin",
  });
  // Its own signatures authorize it.
  const webhook = (prefix: string): InternalRoute => ({
    path: `${prefix}gitops/webhook`,
    match: "exact",
    access: hasSignedWebhook ? "public" : "admin",
  });
  const local = (path: string): InternalRoute => ({ path, match: "exact", access: "local" });
  return [
    ...PROBES,
    { path: "/metrics", match: "exact", access: "metrics" },
    local(DOCS_PATH),
    { path: `${DOCS_PATH}/openapi.json`, match: "exact", access: "document" },
    { path: `${DOCS_PATH}/fonts/`, match: "below", access: "local" },
    ...[CURRENT_PREFIX, LEGACY_PREFIX].flatMap((prefix) => [
      ...VERSIONED.map((name) => admin(`${prefix}${name}`, "exact")),
      webhook(prefix),
      ...VERSIONED_BELOW.map((name) => admin(`${prefix}${name}`, "below")),
    ]),
    SIGN_IN,
  ];
}
