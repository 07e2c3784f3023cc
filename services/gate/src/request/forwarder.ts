// Forwards requests to a target of their route and retries on another target where that is safe.
import type {
  FailureKind,
  ForwardFailure,
  ForwardObserver,
  ForwardTarget,
  HeadWriter,
  RequestEnd,
  Tunnel,
} from "@platform/http1";
import type { ErrorCode } from "@platform/kernel/errors";
import { isDescriptorShortage } from "@platform/kernel/sockets";
import { answerProblem } from "./answers.ts";
import { RequestState, type GateExchange } from "./request-state.ts";
import type { CompiledRoute, RouteTarget } from "../route/compiled-route.ts";
import type { ActiveCounts, MetricBlock } from "../shared-state/index.ts";
import type { RetryBudget } from "../upstream/retry-budget.ts";
import { decideRetry } from "../upstream/retry-policy.ts";
import type { TargetHealth } from "../upstream/target-health.ts";

/** Options of {@link Forwarder}. */
export interface ForwarderOptions {
  workerIndex: number;
  active: ActiveCounts;
  health: TargetHealth;
  budget: RetryBudget;
  block: MetricBlock;
  /** Called when the last request of a removed route has ended. */
  onRouteIdle: (route: CompiledRoute) => void;
  /**
   * Called with the system's error code when no file descriptor is left for an upstream connection. It should free some:
   * the request is retried once.
   */
  onDescriptorShortage: (code: string) => void;
}

const SHORTAGE = "The gateway has no file descriptor left for an upstream connection.";

/** Forwards requests along routes and observes their outcome; one per worker. */
export class Forwarder implements ForwardObserver<RequestState> {
  /** Head of the ring of exchanges that are being forwarded, internal ones included. */
  readonly #active = new RequestState();
  readonly #options: ForwarderOptions;
  readonly #retriesAt: number;
  readonly #refusedAt: number;
  readonly #ejectionsAt: number;
  readonly #tunnelsAt: number;

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#retriesAt = options.block.findCounter("retries");
    this.#refusedAt = options.block.findCounter("retriesRefused");
    this.#ejectionsAt = options.block.findCounter("ejections");
    this.#tunnelsAt = options.block.findCounter("webSocketsActive");
  }

  /** Forwards a request along its route. */
  start(exchange: GateExchange, route: CompiledRoute): void {
    const state = exchange.userData;
    const index = route.balancer.pick(state.tried, state.forwarding.clientAddress);
    state.tried.push(index);
    this.#options.budget.addRequest();
    route.inFlight++;
    state.link(this.#active);
    exchange.forward(this.#enter(state, route.targets[index]!), this);
  }

  /** Adds an exchange that another part forwards; it is removed by its `unlink`. */
  enterInternal(state: RequestState): void {
    state.link(this.#active);
  }

  /** The exchanges that are being forwarded. They may end during the iteration. */
  *listActive(): Generator<RequestState> {
    for (let state = this.#active.next; state !== this.#active;) {
      const { next } = state;
      yield state;
      state = next;
    }
  }

  onRequestHead(exchange: GateExchange, writer: HeadWriter): void {
    const state = exchange.userData;
    writer.raw(state.forwarding.lines);
    state.ids.write(writer);
    if (state.identityLines !== null) writer.raw(state.identityLines);
    if (state.maxForwards !== "") writer.field("Max-Forwards", state.maxForwards);
  }

  onTunnel(exchange: GateExchange, tunnel: Tunnel): void {
    exchange.userData.tunnel = tunnel;
    this.#count(this.#tunnelsAt, 1);
  }

  onFailure(exchange: GateExchange, failure: ForwardFailure): ForwardTarget | null {
    const state = exchange.userData;
    const target = state.target!;
    const isShort = isDescriptorShortage(failure.code);
    // The gateway is at fault, not the target.
    if (isShort) this.#options.onDescriptorShortage(failure.code);
    else this.#judge(target, failure.kind);
    if (exchange.aborted) return null;
    const next = this.#chooseNext(exchange, failure);
    if (next !== null) {
      this.#count(this.#retriesAt, 1);
      this.#leave(state);
      return this.#enter(state, next);
    }
    if (isShort) {
      answerProblem(exchange, "overloaded", SHORTAGE, { "Retry-After": "1" });
      return null;
    }
    const [code, detail] = describeFailure(failure.kind);
    answerProblem(exchange, code, detail);
    return null;
  }

  /** Accounts for the end of a request that {@link start} forwarded. */
  finish(state: RequestState, end: RequestEnd): void {
    const route = state.route!;
    const { health, onRouteIdle } = this.#options;
    if (end.upstreamMs >= 0) health.noteSuccess(state.target!.slot);
    if (state.tunnel !== null) this.#count(this.#tunnelsAt, -1);
    if (end.outcome === "request-refused") state.code = codeOfRefusal(end.status);
    this.#leave(state);
    state.unlink();
    if (--route.inFlight === 0 && route.isRemoved) onRouteIdle(route);
  }

  #enter(state: RequestState, target: RouteTarget): ForwardTarget {
    state.target = target;
    this.#options.active.add(this.#options.workerIndex, target.slot, 1);
    return state.holdsOperatorToken ? target.forwardAnonymous : target.forward;
  }

  #leave(state: RequestState): void {
    this.#options.active.add(this.#options.workerIndex, state.target!.slot, -1);
  }

  // Only the target's own failures count against it, not those of the gateway or a race on an idle connection.
  #judge(target: RouteTarget, kind: FailureKind): void {
    switch (kind) {
      case "queue-full":
      case "queue-timeout":
      case "pool-closed":
      case "reset-on-idle":
      case "total-timeout":
        return;
      default:
    }
    this.#options.block.addUpstreamError(target.slot);
    const isRefused = kind === "connect-refused" || kind === "connect-failed";
    if (this.#options.health.noteFailure(target.slot, isRefused)) {
      this.#count(this.#ejectionsAt, 1);
    }
  }

  #chooseNext(exchange: GateExchange, failure: ForwardFailure): RouteTarget | null {
    // A retry after a timeout could make the client wait as long again.
    if (failure.kind === "response-timeout" || failure.kind === "total-timeout") return null;
    const state = exchange.userData;
    const route = state.route!;
    const decision = decideRetry({
      idempotent: state.isIdempotent,
      requestSent: failure.requestSent,
      replayable: failure.replayable,
      isTargetBlameless: failure.kind === "reset-on-idle" || isDescriptorShortage(failure.code),
      retries: state.retries,
      refreshed: state.wasRefreshed,
    });
    switch (decision.kind) {
      case "give-up":
        return null;
      case "same-target":
        state.wasRefreshed = true;
        return state.target;
      case "other-target":
        break;
      default:
        return decision satisfies never;
    }
    const index = route.balancer.pick(state.tried, state.forwarding.clientAddress);
    if (index === -1) return null;
    if (decision.spend && !this.#options.budget.takeRetry()) {
      this.#count(this.#refusedAt, 1);
      return null;
    }
    state.tried.push(index);
    state.retries++;
    return route.targets[index]!;
  }

  #count(at: number, change: number): void {
    const { values } = this.#options.block;
    values[at] = values[at]! + change;
  }
}

function describeFailure(kind: FailureKind): [code: ErrorCode, detail: string] {
  switch (kind) {
    case "connect-refused":
      return ["upstream_unreachable", "The upstream refused the connection."];
    case "connect-timeout":
      return ["upstream_timeout", "The connection to the upstream timed out."];
    case "connect-failed":
      return ["upstream_unreachable", "The upstream could not be reached."];
    case "tls-failed":
      return ["upstream_unreachable", "The TLS connection to the upstream failed."];
    case "queue-full":
      return ["overloaded", "Too many requests are waiting for this upstream."];
    case "queue-timeout":
      return ["queue_timeout", "No connection to the upstream became free in time."];
    case "pool-closed":
      return ["unavailable", "The route has just changed; try again."];
    case "reset-on-idle":
    case "reset":
      return ["upstream_unreachable", "The upstream closed the connection without a response."];
    case "response-timeout":
    case "total-timeout":
      return ["upstream_timeout", "The upstream did not respond in time."];
    case "malformed-response":
      return ["upstream_invalid_response", "The upstream's response is not valid HTTP."];
    default:
      return kind satisfies never;
  }
}

function codeOfRefusal(status: number): ErrorCode {
  if (status === 413) return "payload_too_large";
  return status === 408 ? "request_timeout" : "bad_request";
}
