// The identity step: authenticates the caller and prepares the identity fields for the upstream.
import type { RequestHead } from "@platform/http1";
import type { GateCaller } from "../../exchange/caller.ts";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import type { RouteSpec } from "../../shared-state/index.ts";
import { admitAnyone, admitByGlobals, admitByRoute } from "./admit-caller.ts";
import { ForwardAuthStep } from "./forward-auth-step.ts";
import type { Identity } from "./identity.ts";
import { findKnownCaller, rememberCaller } from "./known-caller.ts";
import { OidcStep } from "./oidc-step.ts";
import type { StepParts } from "../step-parts.ts";

/** Authenticates by the route's own `auth`, or else by the global settings. */
export function createIdentityStep(spec: RouteSpec, parts: StepParts): Step {
  const { auth } = spec;
  switch (auth.type) {
    case "none":
      return new IdentityStep(parts, admitAnyone, true);
    case "inherit":
      // An API key takes the place of the global token and JWT settings.
      if (spec.steps.requiresApiKey === true) return new IdentityStep(parts, admitAnyone, true);
      return new IdentityStep(parts, admitByGlobals, false);
    case "bearer":
    case "workload": {
      const verify = parts.verifiers.forRoute(auth, spec.confined?.networks);
      const scope = auth.type === "bearer" ? auth.requiredScope : undefined;
      return new RouteIdentityStep(parts, (head) => admitByRoute(head, scope, verify), false);
    }
    case "forward":
      return new ForwardAuthStep(auth, spec, parts);
    case "oidc":
      return new OidcStep(auth, parts);
    default:
      return auth satisfies never;
  }
}

type Admit = (head: RequestHead, identity: Identity) => GateCaller | Promise<GateCaller>;

class IdentityStep implements Step {
  protected readonly parts: StepParts;
  readonly #admit: Admit;
  /** Requests with the operator's token in any form are forwarded without it. */
  readonly #isForAnyone: boolean;

  constructor(parts: StepParts, admit: Admit, isForAnyone: boolean) {
    this.parts = parts;
    this.#admit = admit;
    this.#isForAnyone = isForAnyone;
  }

  run(exchange: GateExchange): boolean | Promise<boolean> {
    return this.parts.identity.current.isOpen || this.judge(exchange);
  }

  protected judge(exchange: GateExchange): boolean | Promise<boolean> {
    const known = findKnownCaller(exchange, this, this.parts);
    if (known !== undefined) return this.#enter(exchange, known);
    const caller = this.#admit(exchange.head, this.parts.identity.current);
    if (!(caller instanceof Promise)) return this.#enterNew(exchange, caller);
    const { sequence } = exchange;
    return caller.then((late) => exchange.sequence === sequence && this.#enterNew(exchange, late));
  }

  #enterNew(exchange: GateExchange, caller: GateCaller): boolean {
    if (caller.kind === "user") rememberCaller(exchange, this, this.parts, caller);
    return this.#enter(exchange, caller);
  }

  #enter(exchange: GateExchange, caller: GateCaller): boolean {
    const state = exchange.userData;
    state.caller = caller;
    state.holdsOperatorToken =
      caller.kind === "operator" ||
      (this.#isForAnyone && this.parts.identity.current.holdsOperatorToken(exchange.head.fields));
    if (caller.kind === "user") {
      state.identityLines = this.parts.identityLines.format(caller.claims);
      // The token was issued under an older policy version.
      if (this.parts.access.isStale(caller.claims))
        state.responseFields.add("X-Token-Refresh", "true");
    }
    return true;
  }
}

/** A route with its own issuer authenticates even if the gateway is open. */
class RouteIdentityStep extends IdentityStep {
  override run(exchange: GateExchange): boolean | Promise<boolean> {
    return this.judge(exchange);
  }
}
