// Takes a routed request through the steps of its route, then upstream.
import { joinLines, Known, Method, type RequestEnd } from "@platform/http1";
import { toPlatformError } from "@platform/kernel/errors";
import { answerError, answerProblem, answerWith } from "../exchange/answers.ts";
import type {
  CompiledRoute,
  DetachedRequest,
  GateExchange,
  StepResult,
} from "../exchange/exchange.ts";
import type { Forwarder } from "./forwarder.ts";
import { settleLater } from "./settle.ts";

/** Options of {@link Pipeline}. */
export interface PipelineOptions {
  forwarder: Forwarder;
  /** Called when the last request of a removed route has ended. */
  onRouteIdle: (route: CompiledRoute) => void;
  /** Called when a request fails inside the gateway. */
  onError: (error: unknown) => void;
}

/** The pipeline of one worker. */
export class Pipeline {
  readonly #options: PipelineOptions;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /** Takes a request through its route. {@link finish} must be called when it has ended. */
  start(exchange: GateExchange, route: CompiledRoute): void {
    this.#enter(exchange, route);
    this.#advance(exchange, route, 0);
  }

  /** Takes a request without a client through the rest of its route. {@link finish} must be called when it has ended. */
  startDetached(exchange: GateExchange, detached: DetachedRequest): void {
    const { route, step } = detached;
    const from = route.steps.list.indexOf(step);
    exchange.userData.stepsFrom = from;
    exchange.userData.stepsDone = from;
    this.#enter(exchange, route);
    detached.hasBegun = true;
    this.#advance(exchange, route, from);
  }

  /** Accounts for the end of a request that {@link start} has begun. */
  finish(exchange: GateExchange, route: CompiledRoute, end: RequestEnd): void {
    const state = exchange.userData;
    if (state.target !== null) this.#options.forwarder.finish(state, end);
    state.unlink();
    state.guests?.finish(end);
    route.steps.finish(exchange, end);
    if (--route.inFlight === 0 && route.isRemoved) this.#options.onRouteIdle(route);
  }

  #enter(exchange: GateExchange, route: CompiledRoute): void {
    const state = exchange.userData;
    state.isInPipeline = true;
    route.inFlight++;
    this.#options.forwarder.enter(state);
  }

  #advance(exchange: GateExchange, route: CompiledRoute, from: number): void {
    const { list } = route.steps;
    const state = exchange.userData;
    for (let at = from; at < list.length; at++) {
      let result: StepResult | Promise<StepResult>;
      try {
        result = list[at]!.run(exchange, route);
      } catch (error) {
        answerError(exchange, toPlatformError(error));
        return;
      }
      if (result instanceof Promise) {
        this.#wait(exchange, route, at, result);
        return;
      }
      if (!result) return;
      state.stepsDone = at + 1;
    }
    this.#forward(exchange, route);
  }

  #wait(
    exchange: GateExchange,
    route: CompiledRoute,
    at: number,
    result: Promise<StepResult>,
  ): void {
    settleLater(exchange, result, {
      onResult: (continues) => {
        if (!continues) return;
        exchange.userData.stepsDone = at + 1;
        this.#advance(exchange, route, at + 1);
      },
      onLate: (continues) => {
        if (continues) route.steps.list[at]!.abandon?.();
      },
      onError: this.#options.onError,
    });
  }

  #forward(exchange: GateExchange, route: CompiledRoute): void {
    const { bodyBytesMax } = route.spec;
    exchange.bodyBytesMax = bodyBytesMax;
    exchange.bodyIdleMs = route.spec.timeouts.idleMs;
    if (exchange.head.contentLength > bodyBytesMax) {
      answerProblem(
        exchange,
        "payload_too_large",
        `The request body is larger than ${bodyBytesMax} bytes.`,
      );
      return;
    }
    const { fields } = exchange.head;
    if (
      fields.has(Known.MaxForwards) &&
      this.#isLastHop(exchange, joinLines(fields, Known.MaxForwards))
    )
      return;
    if (route.steps.hasFilters) exchange.responseFilter = route.steps;
    this.#options.forwarder.start(exchange, route);
  }

  /** Decrements Max-Forwards of OPTIONS and TRACE (RFC 9110 section 7.6.2); true if this is the last hop, which answers. */
  #isLastHop(exchange: GateExchange, sent: string): boolean {
    const state = exchange.userData;
    const { methodId } = exchange.head;
    state.maxForwards = sent;
    if (methodId !== Method.OPTIONS && methodId !== Method.TRACE) return false;
    if (!/^\d{1,9}$/.test(sent)) return false;
    const left = Number(sent);
    state.maxForwards = String(left - 1);
    if (left > 0) return false;
    if (methodId === Method.OPTIONS) answerWith(exchange, { status: 204 });
    else answerProblem(exchange, "not_implemented", "The gateway does not answer TRACE.");
    return true;
  }
}
