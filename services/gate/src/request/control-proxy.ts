// Proxies internal routes to the control plane's socket, with a secret that proves the request passed the guard.
import {
  compilePlan,
  createUpstreamPool,
  type Engine,
  type ForwardFailure,
  type ForwardObserver,
  type ForwardTarget,
  type HeadWriter,
} from "@platform/http1";
import { CUT_FIELDS } from "../route/plan-cache.ts";
import {
  CONTROL_CALLER_HEADER,
  CONTROL_SECRET_HEADER,
  type GlobalSpec,
} from "../shared-state/index.ts";
import { answerProblem } from "../exchange/answers.ts";
import type { GateExchange, RequestState } from "../exchange/exchange.ts";

const CALLER_PREFIX = Buffer.from(`${CONTROL_CALLER_HEADER}: `);

/** Proxies to one control socket. {@link close} it when another one replaces it. */
export class ControlProxy implements ForwardObserver<RequestState> {
  readonly #target: ForwardTarget;

  constructor(engine: Engine, control: GlobalSpec["control"]) {
    this.#target = {
      pool: createUpstreamPool({
        engine,
        addresses: [{ path: control.socketPath }],
        connectionsMax: 64,
        idleMax: 8,
      }),
      plan: compilePlan({
        removeRequestFields: [...CUT_FIELDS, "Authorization"],
        addRequestFields: [[CONTROL_SECRET_HEADER, control.secret]],
      }),
    };
  }

  /** Forwards an authorized request; `userData.caller` identifies the caller. */
  start(exchange: GateExchange): void {
    exchange.forward(this.#target, this);
  }

  /** Closes the pool once its requests are done, after `drainMs` at the latest. */
  close(drainMs: number): void {
    void this.#target.pool.drain(drainMs);
  }

  onRequestHead(exchange: GateExchange, writer: HeadWriter): void {
    const state = exchange.userData;
    writer.raw(state.forwarding.lines);
    state.ids.write(writer);
    writer.fieldAfter(CALLER_PREFIX, describeCaller(state));
  }

  onFailure(exchange: GateExchange, failure: ForwardFailure): ForwardTarget | null {
    const state = exchange.userData;
    if (exchange.aborted) return null;
    if (failure.kind === "reset-on-idle" && state.isIdempotent && !state.wasRefreshed) {
      state.wasRefreshed = true;
      return this.#target;
    }
    answerProblem(exchange, "unavailable", "The gateway's control plane is not responding.");
    return null;
  }
}

function describeCaller({ caller }: RequestState): string {
  if (caller.kind !== "user") return caller.kind;
  return `user ${encodeURIComponent(caller.claims.sub ?? "")}`;
}
