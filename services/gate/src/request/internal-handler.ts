// Handles requests for internal routes: probes are answered here, others go to the control plane after the guard.
import { answerProblem } from "../exchange/answers.ts";
import type { GateExchange } from "../exchange/exchange.ts";
import { SeriesCache } from "../exchange/series-cache.ts";
import { admitAdmin, isOpenTo } from "../filter/identity/admin-guard.ts";
import type { PathScan } from "../exchange/path-scan.ts";
import { INTERNAL_METRICS_ID, type InternalRoute } from "../shared-state/index.ts";
import type { ActiveConfig } from "./active-config.ts";
import type { Forwarder } from "./forwarder.ts";
import type { Probes } from "./probes.ts";
import { describeFault } from "./request-fault.ts";
import { settle } from "./settle.ts";

/** Options of {@link InternalHandler}. */
export interface InternalHandlerOptions {
  config: ActiveConfig;
  probes: Probes;
  forwarder: Forwarder;
  /** Answers a request on a connection above `connectionsMax`. */
  shed: (exchange: GateExchange) => void;
  onBadRequest: () => void;
  onError: (error: unknown) => void;
}

/** Handler of the internal routes of one worker. */
export class InternalHandler {
  readonly #options: InternalHandlerOptions;
  readonly #series = new SeriesCache(INTERNAL_METRICS_ID);

  constructor(options: InternalHandlerOptions) {
    this.#options = options;
  }

  /** Handles a request for an internal route; `scan` is its path. */
  handle(exchange: GateExchange, internal: InternalRoute, scan: PathScan): void {
    const state = exchange.userData;
    const { config, probes, shed, onBadRequest } = this.#options;
    state.series = this.#series;
    if (internal.access === "probe") {
      probes.answer(exchange, internal.path);
      return;
    }
    if (state.isShed) {
      shed(exchange);
      return;
    }
    if (internal.access === "console") {
      this.#passToConsole(exchange, internal, scan);
      return;
    }
    if (scan.hasEncodedSeparator) {
      onBadRequest();
      answerProblem(exchange, "bad_request", describeFault("encoded-separator"));
      return;
    }
    if (!scan.clean) exchange.forwardPath = scan.readPath();
    const { head, connection } = exchange;
    const identity = config.identity.current;
    if (isOpenTo(internal.access, head, connection.remoteAddress, identity)) {
      state.caller = { kind: "local" };
      config.control.start(exchange);
      return;
    }
    settle(exchange, () => admitAdmin(head, connection.remoteAddress, identity), {
      onResult: (caller) => {
        state.caller = caller;
        // A stream of the admin API ends when its caller's token is revoked.
        this.#options.forwarder.enter(state);
        config.control.start(exchange);
      },
      onError: this.#options.onError,
    });
  }

  // As it was sent: keys of objects contain encoded slashes.
  #passToConsole(exchange: GateExchange, { path }: InternalRoute, scan: PathScan): void {
    const { config, onBadRequest } = this.#options;
    if (scan.isRawSafe(path.length)) {
      config.console!.start(exchange);
      return;
    }
    onBadRequest();
    answerProblem(exchange, "bad_request", describeFault("climbs-above-root"));
  }
}
