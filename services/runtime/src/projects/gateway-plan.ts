// The routes of a project at the gateway: one for all paths of its host, and one for each endpoint with rules of its own.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { GatewayRules } from "@platform/kernel/route-rules";
import { formatProof, PROOF_FIELD } from "@platform/service/rules";
import type { GatewayVersion } from "../watch/messages.ts";
import type { BoundRules } from "./operator-rules.ts";

/** Routes to register, and what the operator's bounds have changed. */
export interface GatewayPlan {
  readonly routes: readonly object[];
  readonly cuts: readonly string[];
}

/** File of the operator's bounds in the data folder. */
const BOUNDS_FILE = join("gate", "projects.json");

type Bind = (rules: GatewayRules) => BoundRules;

interface Bindable {
  subject: string;
  declaredAt: string;
  given: GatewayRules;
  /** The part of `given` that is declared there. */
  own: GatewayRules;
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
  const path = join(dataDir, BOUNDS_FILE);
  const bind = rules === null && !existsSync(path) ? bindNothing : await createBinder(path, name);
  const cuts = new Set<string>();
  const bound = ({ subject, declaredAt, given, own }: Bindable): object => {
    try {
      const result = bind(given);
      for (const { field, text } of result.cuts) {
        // Inherited ones are those of the declaration for all routes.
        if (Object.hasOwn(own, field)) cuts.add(formatRule(subject, declaredAt, text));
      }
      return result.rules;
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
    // Stored responses were admitted by the rules of their time.
    ...("cache_ttl_seconds" in given ? { cache_version: hash(secret) } : {}),
    ...(declaredAt === "" ? {} : { declared_at: declaredAt }),
    ...(rules === null
      ? {}
      : { request_headers: { set: { [PROOF_FIELD]: formatProof(secret, index) } } }),
  });
  const { rules: base = {}, declaredAt = "" } = rules?.service ?? {};
  const all = bound({ subject: "gateway", declaredAt, given: base, own: base });
  const routes: object[] = [{ method: "*", path: "/*", ...build(-1, declaredAt, all) }];
  for (const [index, endpoint] of (rules?.endpoints ?? []).entries()) {
    const { method, path } = endpoint;
    const subject = `gateway of ${method} ${path}`;
    const { declaredAt: at, rules: own } = endpoint;
    const given = { ...base, ...own };
    const route = build(index, at, bound({ subject, declaredAt: at, given, own }));
    routes.push({ method, path, variant: `${method} ${path}`, ...route });
  }
  return { routes, cuts: [...cuts] };
}

const bindNothing: Bind = (rules) => ({ rules, cuts: [] });

// Loads the schema of the rules, which a platform without rules does not need.
async function createBinder(path: string, name: string): Promise<Bind> {
  const { applyBounds, readBounds } = await import("./operator-rules.ts");
  const bounds = readBounds(path, name);
  return (rules) => applyBounds(rules, bounds);
}

function hash(secret: string): string {
  return createHash("sha256").update(secret).digest("base64url").slice(0, 16);
}

function formatRule(subject: string, declaredAt: string, text: string): string {
  return declaredAt === "" ? `${subject}: ${text}` : `${declaredAt}: ${subject}: ${text}`;
}
