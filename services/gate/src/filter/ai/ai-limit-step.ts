// The step of AI routes that reserves tokens and money for a request to a model.
import type { AiParts } from "../../ai/ai-parts.ts";
import { ANONYMOUS_TENANT, type Reservation } from "../../ai/ledger/accounting.ts";
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

  run(exchange: GateExchange, route: CompiledRoute): boolean | Promise<boolean> {
    const { ai, models } = exchange.userData;
    if (!(ai instanceof ModelCall) || ai.request.isCount) return true;
    const { tokensPerMinute } = this.#spec;
    const tenant = findTenant(exchange);
    const by = tenant ?? `address ${exchange.userData.forwarding.clientAddress}`;
    const reserve = (call: ModelCall): void | Promise<void> => {
      const hold = (reservation: Reservation): void => {
        // The client may have left while Redis was asked.
        if (call.settled === undefined) call.release = (settled) => reservation.settle(settled);
        else reservation.settle(call.settled);
      };
      const reserved = this.#parts.accounting.reserve({
        call,
        tenant: tenant ?? ANONYMOUS_TENANT,
        routeLabel: route.label,
        routeLimit: tokensPerMinute === undefined ? undefined : { perMinute: tokensPerMinute, by },
      });
      return reserved instanceof Promise ? reserved.then(hold) : hold(reserved);
    };
    if (models instanceof ModelRoute) models.reserve = reserve;
    return reserve(ai)?.then(() => true) ?? true;
  }
}
