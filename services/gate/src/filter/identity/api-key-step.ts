// The steps of tenants: an API key if the route requires one, and a tenant that the route admits.
import { PlatformError } from "@platform/kernel/errors";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import { makeRouteLabel, type RouteSpec } from "../../shared-state/index.ts";
import { admitByKey, type ApiKeyRule, checkTenant } from "./api-keys.ts";
import type { StepParts } from "../step-parts.ts";

/** Requires an API key. */
export function createApiKeyStep(spec: RouteSpec, parts: StepParts): Step | undefined {
  if (spec.steps.requiresApiKey !== true) return undefined;
  const rule = { label: makeRouteLabel(spec.host, spec.prefix), tenants: spec.steps.tenants };
  return new ApiKeyStep(rule, parts);
}

/** Requires a token of an admitted tenant; with API keys, their step has done it. */
export function createTenantStep(spec: RouteSpec): Step | undefined {
  const { tenants, requiresApiKey } = spec.steps;
  if (tenants === undefined || requiresApiKey === true) return undefined;
  return {
    run({ userData: { caller } }) {
      if (caller.kind !== "operator") {
        checkTenant(caller.kind === "user" ? caller.claims.tenant : undefined, tenants);
      }
      return true;
    },
  };
}

class ApiKeyStep implements Step {
  readonly #rule: ApiKeyRule;
  readonly #parts: StepParts;

  constructor(rule: ApiKeyRule, parts: StepParts) {
    this.#rule = rule;
    this.#parts = parts;
  }

  run(exchange: GateExchange): boolean {
    const { access, identityLines, identity } = this.#parts;
    const { fields } = exchange.head;
    const key = admitByKey(fields, access.keys, this.#rule);
    const state = exchange.userData;
    state.apiKey = key;
    state.holdsOperatorToken ||= identity.current.holdsOperatorToken(fields);
    const { caller } = state;
    const tenant = caller.kind === "user" ? caller.claims.tenant : undefined;
    if (tenant !== undefined && tenant !== key.tenant) {
      throw new PlatformError("forbidden", "The API key and the token are of different tenants.");
    }
    if (tenant === undefined) {
      const lines = identityLines.formatKey(key);
      state.identityLines =
        state.identityLines === null ? lines : Buffer.concat([state.identityLines, lines]);
    }
    return true;
  }
}
