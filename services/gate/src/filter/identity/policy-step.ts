// The policy step: applies the global policy, then that of the route.
import { PlatformError } from "@platform/kernel/errors";
import { readMethod } from "../../exchange/answers.ts";
import { readPaths } from "../../exchange/request-path.ts";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import type { RouteSpec } from "../../shared-state/index.ts";
import type { AccessState } from "./access-state.ts";
import { Policy } from "./policy.ts";
import type { StepParts } from "../step-parts.ts";

/** Every route has this step, because the global policy changes without the routes. */
export function createPolicyStep(spec: RouteSpec, { access }: StepParts): Step {
  return new PolicyStep(
    access,
    spec.steps.policy === undefined ? undefined : new Policy(spec.steps.policy),
  );
}

class PolicyStep implements Step {
  readonly #access: AccessState;
  readonly #own: Policy | undefined;

  constructor(access: AccessState, own: Policy | undefined) {
    this.#access = access;
    this.#own = own;
  }

  run(exchange: GateExchange): boolean {
    if (this.#own === undefined && this.#access.globalPolicy === undefined) return true;
    const { fields } = exchange.head;
    const method = readMethod(exchange).toUpperCase();
    // Many upstreams drop segment parameters (`/admin;x`): both forms of the path must be allowed.
    for (const path of readPaths(exchange)) {
      if (this.#decide({ method, path, fields }) === "deny") {
        throw new PlatformError("policy_denied", "The policy denies this request.");
      }
    }
    return true;
  }

  #decide(request: Parameters<Policy["decide"]>[0]): "allow" | "deny" {
    const { globalPolicy, policy } = this.#access;
    return globalPolicy?.decide(request) ?? this.#own?.decide(request) ?? policy.default;
  }
}
