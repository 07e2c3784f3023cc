// The step of AI routes that reserves tokens and money for a request to a model.
import type { AiParts } from "../../ai/ai-parts.ts";
import { ANONYMOUS_TENANT } from "../../ai/ledger/accounting.ts";
import { ModelCall } from "../../ai/meter/model-call.ts";
import { ModelRoute } from "../../ai/route/model-route.ts";
import type { CompiledRoute, GateExchange, Step } from "../../exchange/exchange.ts";
import type { AiSpec, RouteSpec } from "../../shared-state/index.ts";
import type { StepParts } from "../step-parts.ts";
import { findTenant } from "./find-tenant.ts";

/** Limits the requests of an AI route. */
export function createAiLimitStep({ steps }: RouteSpec, parts: StepParts): Step | undefined {
  return steps.ai === undefined ? undefined : new AiLimitStep(steps.ai, parts.ai);
}

class AiLimitStep implements Step {
  readonly #spec: AiSpec;
  readonly #parts: AiParts;

  constructor(spec: AiSpec, parts: AiParts) {
    this.#spec = spec;
    this.#parts = parts;
  }

  run(exchange: GateExchange, route: CompiledRoute): boolean {
    const { ai, models } = exchange.userData;
    if (!(ai instanceof ModelCall) || ai.request.isCount) return true;
    const { tokensPerMinute } = this.#spec;
    const tenant = findTenant(exchange);
    const by = tenant ?? `address ${exchange.userData.forwarding.clientAddress}`;
    const reserve = (call: ModelCall): void => {
      const reservation = this.#parts.accounting.reserve({
        call,
        tenant: tenant ?? ANONYMOUS_TENANT,
        routeLabel: route.label,
        routeLimit: tokensPerMinute === undefined ? undefined : { perMinute: tokensPerMinute, by },
      });
      call.release = (settled) => reservation.settle(settled);
    };
    reserve(ai);
    if (models instanceof ModelRoute) models.reserve = reserve;
    return true;
  }
}
