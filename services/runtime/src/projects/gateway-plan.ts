// The routes of a project at the gateway: one for all paths of its host, and one for each endpoint with rules of its own.
import type { GatewayRules } from "@platform/kernel/route-rules";
import { formatProof, PROOF_FIELD, type ServiceRules } from "@platform/service/host";
import type { GatewayVersion } from "../watch/messages.ts";

/** Routes to register, and what the operator's bounds have changed. */
export interface GatewayPlan {
  readonly routes: readonly object[];
  readonly cuts: readonly string[];
}

/** Options of {@link planRoutes}. */
export interface PlanOptions {
  name: string;
  host: string;
  dataDir: string;
  version: Pick<GatewayVersion, "rules" | "secret">;
}

/**
 * Plans the routes. Precedence: the operator's values, the route's, those of the project. Throws an explanation if the operator
 * does not allow the rules.
 */
export async function planRoutes(options: PlanOptions): Promise<GatewayPlan> {
  const { name, host, dataDir, version } = options;
  const { rules, secret } = version;
  // Loads the schema of the rules.
  const { applyBounds, readBounds } = await import("./operator-rules.ts");
  const bounds = readBounds(dataDir, name);
  const cuts = new Set<string>();
  const bind = (subject: string, declaredAt: string, given: GatewayRules): object => {
    try {
      const bound = applyBounds(given, bounds);
      for (const cut of bound.cuts) cuts.add(formatRule(subject, declaredAt, cut));
      return bound.rules;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(formatRule(subject, declaredAt, reason), { cause: error });
    }
  };
  const build = (index: number, declaredAt: string, given: object): object => ({
    host,
    access_log: true,
    auth: { type: "none" },
    ...given,
    ...(declaredAt === "" ? {} : { declared_at: declaredAt }),
    ...(rules === null
      ? {}
      : { request_headers: { set: { [PROOF_FIELD]: formatProof(secret, index) } } }),
  });
  const { rules: base = {}, declaredAt = "" } = rules?.service ?? {};
  const all = bind("gateway", declaredAt, base);
  const routes: object[] = [{ method: "*", path: "/*", ...build(-1, declaredAt, all) }];
  for (const [index, endpoint] of (rules?.endpoints ?? []).entries()) {
    const { method, path } = endpoint;
    const subject = `gateway of ${method} ${path}`;
    const own = bind(subject, endpoint.declaredAt, { ...base, ...endpoint.rules });
    const route = build(index, endpoint.declaredAt, own);
    routes.push({ method, path, variant: `${method} ${path}`, ...route });
  }
  return { routes, cuts: [...cuts] };
}

/** The rules of a version for people: each declaration with its place. */
export function describeRules(rules: ServiceRules | null): string[] {
  if (rules === null) return [];
  const { service, endpoints } = rules;
  const own = endpoints.filter((one) => Object.keys(one.rules).length > 0);
  return [
    ...(service === undefined
      ? []
      : [formatRule("gateway", service.declaredAt, Object.keys(service.rules).join(", "))]),
    ...own.map(({ method, path, declaredAt, rules: fields }) =>
      formatRule(`gateway of ${method} ${path}`, declaredAt, Object.keys(fields).join(", ")),
    ),
  ];
}

function formatRule(subject: string, declaredAt: string, text: string): string {
  return declaredAt === "" ? `${subject}: ${text}` : `${declaredAt}: ${subject}: ${text}`;
}
