// Rules of a service for the platform's gateway, as it sends them to the platform, and the requests that may do without.
import type { GatewayRules } from "@platform/kernel/route-rules";
import type { RouteDefinition } from "../http/definition.ts";
import { formatProof } from "../http/proof.ts";
import { parsePath, type Segment } from "../route/path.ts";
import type { Service } from "./service.ts";

const ENDPOINTS_MAX = 1_000;

/** Rules that are wrong, or not accepted; the message names the place of each declaration. */
export class GatewayRulesError extends TypeError {
  constructor(message: string) {
    super(message);
    this.name = "GatewayRulesError";
  }
}

/** Rules and the place of their declaration. */
export interface DeclaredRules {
  readonly rules: GatewayRules;
  /** `path:line:column`; "" if unknown. */
  readonly declaredAt: string;
}

/** A route that has rules of its own, or takes precedence over one that has. */
interface EndpointRules extends DeclaredRules {
  readonly method: string;
  readonly path: string;
  /** True if its requests need the proof for its position in {@link ServiceRules.endpoints}. */
  readonly restricts: boolean;
}

/** All rules of a service, as JSON. */
export interface ServiceRules {
  /** The rules for all routes. */
  readonly service: DeclaredRules | undefined;
  readonly endpoints: readonly EndpointRules[];
  /** True if requests of other routes are restricted by the rules for all. */
  readonly restricts: boolean;
}

/**
 * Reads and checks the rules; undefined if there are none. Throws a GatewayRulesError that names each fault with the position of the
 * declaration. The schema is loaded by services with rules only.
 */
export async function readServiceRules(service: Service): Promise<ServiceRules | undefined> {
  const { gatewayRules: all, routes } = service;
  const ruled = routes.filter(({ options }) => options.gateway !== undefined);
  if (all === undefined && ruled.length === 0) return undefined;
  const { checkRules, restrictsAccess } = await import("@platform/kernel/route-rules");
  const faults: string[] = [];
  const check = (subject: string, declaredAt: string, rules: unknown, base?: GatewayRules) => {
    for (const { path, message } of checkRules(rules, base)) {
      faults.push(`${declaredAt}: ${subject}: ${[...path, message].join(" ")}`);
    }
  };
  if (all !== undefined) check("gateway", all.declaredAt, all.rules);
  if (faults.length === 0) {
    for (const { method, path, declaredAt, options } of ruled) {
      check(`gateway of ${method} ${path}`, declaredAt, options.gateway, all?.rules);
    }
  }
  const endpoints = listEndpoints(routes, ruled);
  if (endpoints.length > ENDPOINTS_MAX) {
    faults.push(`at most ${ENDPOINTS_MAX} routes can have rules of their own at the gateway`);
  }
  if (faults.length > 0) throw new GatewayRulesError(faults.join("\n"));
  // A copy: the code may change its own after the check.
  const base = copy(all?.rules ?? {});
  return {
    service: all && { rules: base, declaredAt: all.declaredAt },
    endpoints: endpoints.map(({ method, path, declaredAt, options }) => {
      const rules = copy(options.gateway ?? {});
      const restricts = restrictsAccess({ ...base, ...rules });
      return { method, path, declaredAt, rules, restricts };
    }),
    restricts: restrictsAccess(base),
  };
}

/** The declarations for people: `main.service.ts:2:1: GET /notes: ip_allowlist`. Built programs have no positions. */
export function listDeclared({ service, endpoints }: ServiceRules): string[] {
  const named = [
    ...(service === undefined ? [] : [{ subject: "all routes", ...service }]),
    ...endpoints.map((one) => ({ subject: `${one.method} ${one.path}`, ...one })),
  ];
  return named.flatMap(({ subject, declaredAt, rules }) => {
    const fields = Object.keys(rules);
    const place = declaredAt === "" ? "" : `${declaredAt}: `;
    return fields.length === 0 ? [] : [`${place}${subject}: ${fields.join(", ")}`];
  });
}

/** Returns the proof that requests of a route need; undefined if its rules do not restrict access. */
export function createProofs(
  rules: ServiceRules | undefined,
  secret: string,
): (route: Pick<RouteDefinition, "method" | "path">) => Buffer | undefined {
  const known = new Map(
    rules?.endpoints.map(({ method, path, restricts }, index) => [
      `${method} ${path}`,
      restricts ? Buffer.from(formatProof(secret, index), "latin1") : undefined,
    ]),
  );
  const others =
    rules?.restricts === true ? Buffer.from(formatProof(secret, -1), "latin1") : undefined;
  return ({ method, path }) => {
    const name = `${method} ${path}`;
    return known.has(name) ? known.get(name) : others;
  };
}

/** The routes with rules, and those that take requests from them: `/notes/new` before `/notes/:id`. */
function listEndpoints(
  routes: readonly RouteDefinition[],
  ruled: readonly RouteDefinition[],
): RouteDefinition[] {
  const known = ruled.map(({ method, path }) => ({ method, segments: parsePath(path) }));
  return routes.filter(({ method, path, options }) => {
    if (options.gateway !== undefined) return true;
    const segments = parsePath(path);
    return known.some(
      (other) => other.method === method && takesPrecedence(segments, other.segments),
    );
  });
}

/** True if both paths match some request, and the router prefers the first. */
function takesPrecedence(one: readonly Segment[], other: readonly Segment[]): boolean {
  let isPreferred = false;
  for (let index = 0; ; index++) {
    const [mine, theirs] = [one[index], other[index]];
    if (mine === undefined || theirs === undefined) return mine === theirs && isPreferred;
    if (mine.kind === "rest") return isPreferred;
    if (mine.kind === "text" && theirs.kind === "text" && mine.text !== theirs.text) return false;
    // A parameter is not empty.
    const [texts] = [mine, theirs].filter((segment) => segment.kind === "text");
    const hasParam = mine.kind === "param" || theirs.kind === "param";
    if (hasParam && texts?.kind === "text" && texts.text === "") return false;
    isPreferred ||= rank(mine) < rank(theirs);
    if (theirs.kind === "rest") return isPreferred;
    if (rank(mine) > rank(theirs) && !isPreferred) return false;
  }
}

function rank({ kind }: Segment): number {
  return ["text", "param", "rest"].indexOf(kind);
}

function copy(rules: GatewayRules): GatewayRules {
  return JSON.parse(JSON.stringify(rules)) as GatewayRules;
}
