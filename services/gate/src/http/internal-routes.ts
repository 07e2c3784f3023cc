// The gateway's own paths: a closed list that wins over routes, in the current and in the legacy form.
import type { OwnPath } from "../shared-state/index.ts";

const legacyPrefix = "/api/";
const currentPrefix = "/api/v1/";
const docsPath = "/api/docs";

const probes: readonly OwnPath[] = [
  { path: "/healthz", match: "exact", access: "probe" },
  { path: "/readyz", match: "exact", access: "probe" },
];

const versioned: readonly string[] = [
  "routes",
  "routes/register",
  "admin/middleware",
  "admin/connections",
  "admin/cache",
  "admin/policy/reload",
  "admin/policy/revoke",
  "admin/api-keys",
  "admin/ai-billing",
  "admin/ai-cost-attribution",
  "admin/metrics/ws",
  "admin/console/sync",
  "admin/reload",
  "gitops/webhook",
];

const versionedBelow: readonly string[] = ["admin/middleware/", "admin/api-keys/"];

/** Every own path, for the listener that serves them; the probes alone for one that does not. */
export function listOwnPaths(face: "all" | "probes"): OwnPath[] {
  if (face === "probes") return [...probes];
  const admin = (path: string, match: OwnPath["match"]): OwnPath => ({
    path,
    match,
    access: "admin",
  });
  return [
    ...probes,
    admin("/metrics", "exact"),
    admin(docsPath, "exact"),
    admin(`${docsPath}/openapi.json`, "exact"),
    ...[currentPrefix, legacyPrefix].flatMap((prefix) => [
      ...versioned.map((name) => admin(`${prefix}${name}`, "exact")),
      ...versionedBelow.map((name) => admin(`${prefix}${name}`, "below")),
    ]),
    { path: "/ui/", match: "below", access: "public" },
  ];
}
