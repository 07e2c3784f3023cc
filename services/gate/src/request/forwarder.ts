// Forwards requests to a target of their route and retries on another target where that is safe.
import {
  type FailureKind,
  type ForwardFailure,
  type ForwardObserver,
  type ForwardTarget,
  type HeadWriter,
  Known,
  type RequestEnd,
  type ResponseHead,
  type Tunnel,
} from "@platform/http1";
import type { ErrorCode } from "@platform/kernel/errors";
import { isDescriptorShortage } from "@platform/kernel/sockets";
import { answerProblem } from "../exchange/answers.ts";
import {
  type CompiledRoute,
  type ExchangeModels,
  type GateExchange,
  RequestState,
} from "../exchange/exchange.ts";
import { ClientCertificates } from "../filter/identity/client-certificates.ts";
import { PlanVariant, type RouteTarget } from "../exchange/route-target.ts";
import type { ActiveCounts, LinkFigures, MetricBlock } from "../shared-state/index.ts";
import { isServerError } from "../upstream/resilience.ts";
import { settleLater } from "./settle.ts";
import type { RetryBudget } from "../upstream/retry-budget.ts";
import { decideRetry, RETRIES_MAX_DEFAULT } from "../upstream/retry-policy.ts";
import type { TargetHealth } from "../upstream/target-health.ts";

/** Options of {@link Forwarder}. */
export interface ForwarderOptions {
  workerIndex: number;
  active: ActiveCounts;
  figures: LinkFigures;
  health: TargetHealth;
  budget: RetryBudget;
  block: MetricBlock;
  /**
   * Called with the system's error code when no file descriptor is left for an upstream connection. It should free some:
   * the request is retried once.
   */
  onDescriptorShortage: (code: string) => void;
  /** Called when a request fails inside the gateway. */
  onError: (error: unknown) => void;
}

const EVENT_STREAM = Buffer.from("text/event-stream");
const SHORTAGE = "The gateway has no file descriptor left for an upstream connection.";

/** Forwards requests along routes and observes their outcome; one per worker. */
export class Forwarder implements ForwardObserver<RequestState> {
  /** Head of the ring of exchanges that pass a route or are proxied to the control plane. */
  readonly #active = new RequestState();
  readonly #options: ForwarderOptions;
  readonly #clientCertificates = new ClientCertificates();
  readonly #retriesAt: number;
  readonly #refusedAt: number;
  readonly #ejectionsAt: number;
  readonly #tunnelsAt: number;
  readonly #circuitRefusedAt: number;

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#retriesAt = options.block.findCounter("retries");
    this.#refusedAt = options.block.findCounter("retriesRefused");
    this.#ejectionsAt = options.block.findCounter("ejections");
    this.#circuitRefusedAt = options.block.findCounter("circuitRefused");
    this.#tunnelsAt = options.block.findCounter("webSocketsActive");
  }

  /** Forwards a request along its route. */
  start(exchange: GateExchange, route: CompiledRoute): void {
    const state = exchange.userData;
    if (state.models !== null) {
      this.#startModel(exchange, route, state.models);
      return;
    }
    let index = this.#choose(state, route);
    if (index === -1) {
      index = route.resilience?.startTrial((at) => route.balancer.isWeighted(at)) ?? -1;
      state.isTrial = index !== -1;
    }
    if (index === -1) {
      this.#refuse(exchange, route);
      return;
    }
    state.tried.push(index);
    this.#options.budget.addRequest();
    exchange.forward(this.#enter(state, route.targets[index]!), this);
  }

  /** Adds an exchange to the active ones; it is removed by its `unlink`. */
  enter(state: RequestState): void {
    state.link(this.#active);
  }

  /** The active exchanges. They may end during the iteration. */
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
    this.#clientCertificates.write(exchange, writer);
    if (state.maxForwards !== "") writer.field("Max-Forwards", state.maxForwards);
    for (const step of state.route!.steps.requestHooks) step.onRequestHead!(exchange, writer);
  }

  onResponse(exchange: GateExchange, head: ResponseHead, elapsedMs: number): ForwardTarget | null {
    const state = exchange.userData;
    const { resilience } = state.route!;
    if (resilience === undefined || !resilience.isRetried(head.status)) return null;
    if (state.models !== null) return null;
    if (!state.isIdempotent || state.retries >= resilience.retry!.attemptsMax) return null;
    if (!this.#mayRetry(true)) return null;
    // Another attempt at the same target if there is no other: the status may be a passing one.
    let index = this.#choose(state, state.route!);
    if (index === -1) index = resilience.admits(state.target!.link) ? state.target!.index : -1;
    if (index === -1 || !this.#options.budget.takeRetry()) return null;
    this.#noteStatus(state, head.status, elapsedMs);
    return this.#retryAt(state, index);
  }

  onResponseHead(
    exchange: GateExchange,
    head: ResponseHead,
    writer: HeadWriter,
    elapsedMs: number,
  ): void {
    const state = exchange.userData;
    // The client may get another status, such as that of a stored response.
    this.#noteStatus(state, head.status, elapsedMs);
    state.isStream = isEventStream(head);
    state.responseFields.write(writer);
    for (const step of state.route!.steps.responseHooks)
      step.onResponseHead!(exchange, head, writer);
  }

  onTunnel(exchange: GateExchange, tunnel: Tunnel): void {
    exchange.userData.tunnel = tunnel;
    exchange.userData.isStream = true;
    this.#count(this.#tunnelsAt, 1);
  }

  onFailure(exchange: GateExchange, failure: ForwardFailure): ForwardTarget | null {
    const state = exchange.userData;
    const target = state.target!;
    const isShort = isDescriptorShortage(failure.code);
    // The gateway is at fault, not the target.
    if (isShort) this.#options.onDescriptorShortage(failure.code);
    else this.#judge(state, target, failure.kind);
    if (exchange.aborted) return null;
    const next = this.#chooseNext(exchange, failure);
    if (next !== null) return next;
    const { kind } = failure;
    // A model that could not be reached has not been paid: the other one may be.
    const other = state.models?.onFailure(kind) ?? null;
    const refuse = (): void => answerFailure(exchange, kind, isShort);
    if (other instanceof Promise) {
      exchange.answersLater = true;
      this.#forwardLater(exchange, other, refuse);
      return null;
    }
    if (other === null) refuse();
    return other;
  }

  /** Accounts for the end of a request that {@link start} forwarded. */
  finish(state: RequestState, end: RequestEnd): void {
    if (state.tunnel !== null) this.#count(this.#tunnelsAt, -1);
    if (end.outcome === "request-refused") state.code = codeOfRefusal(end.status);
    this.#leave(state);
  }

  // The fallback begins if the circuit of the primary is open; if those of both are, one request now and then finds out.
  #startModel(exchange: GateExchange, route: CompiledRoute, models: ExchangeModels): void {
    const state = exchange.userData;
    models.enter = (index) => {
      const isOpen = route.resilience?.admits(route.targets[index]!.link) === false;
      return isOpen ? null : this.#enterModel(state, index);
    };
    const first = models.target;
    this.#options.budget.addRequest();
    const forward = models.enter(first);
    if (forward !== null) {
      exchange.forward(forward, this);
      return;
    }
    const refuse = (): void => {
      const trial = route.resilience?.startTrial((index) => index === first) ?? -1;
      if (trial === -1 || models.target !== first) {
        this.#refuse(exchange, route);
        return;
      }
      state.isTrial = true;
      exchange.forward(this.#enterModel(state, trial), this);
    };
    const other = models.onFailure(undefined);
    if (other instanceof Promise) this.#forwardLater(exchange, other, refuse);
    else if (other === null) refuse();
    else exchange.forward(other, this);
  }

  #enterModel(state: RequestState, index: number): ForwardTarget {
    if (state.target === null) {
      state.tried.push(index);
      return this.#enter(state, state.route!.targets[index]!);
    }
    return this.#retryAt(state, index);
  }

  #forwardLater(
    exchange: GateExchange,
    later: Promise<ForwardTarget | null>,
    refuse: () => void,
  ): void {
    settleLater(exchange, later, {
      onResult: (target) => {
        if (target === null) refuse();
        else exchange.forward(target, this);
      },
      onError: this.#options.onError,
    });
  }

  // Targets whose circuit is open count as tried.
  #choose(state: RequestState, route: CompiledRoute): number {
    const { tried, forwarding } = state;
    let index = this.#isPreferredUsable(state, route)
      ? state.preferredTarget
      : route.balancer.pick(tried, forwarding.clientAddress);
    const { resilience } = route;
    if (resilience === undefined) return index;
    while (index !== -1 && !resilience.admits(route.targets[index]!.link)) {
      tried.push(index);
      index = route.balancer.pick(tried, forwarding.clientAddress);
    }
    return index;
  }

  #isPreferredUsable({ preferredTarget, tried }: RequestState, route: CompiledRoute): boolean {
    if (preferredTarget === -1 || tried.length > 0) return false;
    return !this.#options.health.isEjected(route.targets[preferredTarget]!.slot);
  }

  #refuse(exchange: GateExchange, route: CompiledRoute): void {
    if (route.targets.length === 0) {
      if (answerInstead(exchange, route)) return;
      answerProblem(exchange, "unavailable", "The service has no address.", { "Retry-After": "1" });
      return;
    }
    this.#count(this.#circuitRefusedAt, 1);
    if (answerInstead(exchange, route)) return;
    // A trial follows in less than a second.
    const headers = { "Retry-After": "1" };
    answerProblem(exchange, "circuit_open", "The upstream is failing; try again later.", headers);
  }

  #noteStatus(state: RequestState, status: number, elapsedMs: number): void {
    const { link, slot } = state.target!;
    const { resilience } = state.route!;
    const isFailure = resilience?.isFailure(status) ?? isServerError(status);
    this.#options.figures.addResponse(link, elapsedMs, isFailure);
    resilience?.note(link, isFailure, state.isTrial ? "trial" : "usual");
    if (resilience?.isOutlier(status) !== true) {
      this.#options.health.noteSuccess(slot);
    } else if (this.#options.health.noteFailure(slot, false)) {
      this.#count(this.#ejectionsAt, 1);
    }
  }

  #enter(state: RequestState, target: RouteTarget): ForwardTarget {
    state.target = target;
    this.#options.active.add(this.#options.workerIndex, target.slot, 1);
    return target.findForward(
      (state.holdsOperatorToken ? PlanVariant.anonymous : PlanVariant.plain) |
        (state.revalidates ? PlanVariant.revalidation : PlanVariant.plain),
    );
  }

  #leave(state: RequestState): void {
    this.#options.active.add(this.#options.workerIndex, state.target!.slot, -1);
  }

  // Only the target's own failures count against it, not those of the gateway or a race on an idle connection.
  #judge({ route }: RequestState, target: RouteTarget, kind: FailureKind): void {
    switch (kind) {
      case "queue-full":
      case "queue-timeout":
      case "pool-closed":
      case "reset-on-idle":
      case "total-timeout":
        return;
      default:
    }
    this.#options.figures.addUnanswered(target.link);
    // A malformed response shows a target that is there: it is refused each time, and does not open the circuit.
    const how = kind === "connect-refused" ? "refused" : "usual";
    if (kind !== "malformed-response") route!.resilience?.note(target.link, true, how);
    this.#options.block.addUpstreamError(target.slot);
    const isRefused = kind === "connect-refused" || kind === "connect-failed";
    if (this.#options.health.noteFailure(target.slot, isRefused)) {
      this.#count(this.#ejectionsAt, 1);
    }
  }

  #chooseNext(exchange: GateExchange, failure: ForwardFailure): ForwardTarget | null {
    const state = exchange.userData;
    const route = state.route!;
    const retry = route.resilience?.retry;
    // A retry after a timeout could make the client wait as long again.
    if (failure.kind === "total-timeout") return null;
    if (failure.kind === "response-timeout" && retry?.onTimeout !== true) return null;
    const decision = decideRetry({
      idempotent: state.isIdempotent,
      requestSent: failure.requestSent,
      replayable: failure.replayable,
      isTargetBlameless: failure.kind === "reset-on-idle" || isDescriptorShortage(failure.code),
      retries: state.retries,
      retriesMax: retry?.attemptsMax ?? RETRIES_MAX_DEFAULT,
      refreshed: state.wasRefreshed,
    });
    switch (decision.kind) {
      case "give-up":
        return null;
      case "same-target":
        state.wasRefreshed = true;
        this.#count(this.#retriesAt, 1);
        return this.#reenter(state, state.target!);
      case "other-target":
        // The other model is no further target of this one.
        if (state.models !== null) return null;
        break;
      default:
        return decision satisfies never;
    }
    if (decision.spend && !this.#mayRetry(state.tried.length < route.targets.length)) return null;
    const index = this.#choose(state, route);
    if (index === -1 || (decision.spend && !this.#options.budget.takeRetry())) return null;
    return this.#retryAt(state, index);
  }

  // Asked before a target is chosen: choosing one uses up a probe of a half-open circuit.
  #mayRetry(hasTarget: boolean): boolean {
    if (this.#options.budget.hasRetry) return true;
    if (hasTarget) this.#count(this.#refusedAt, 1);
    return false;
  }

  #retryAt(state: RequestState, index: number): ForwardTarget {
    state.tried.push(index);
    state.isTrial = false;
    state.retries++;
    this.#count(this.#retriesAt, 1);
    return this.#reenter(state, state.route!.targets[index]!);
  }

  #reenter(state: RequestState, target: RouteTarget): ForwardTarget {
    this.#leave(state);
    return this.#enter(state, target);
  }

  #count(at: number, change: number): void {
    const { values } = this.#options.block;
    values[at] = values[at]! + change;
  }
}

function answerFailure(exchange: GateExchange, kind: FailureKind, isShort: boolean): void {
  if (answerInstead(exchange, exchange.userData.route!)) return;
  if (isShort) {
    answerProblem(exchange, "overloaded", SHORTAGE, { "Retry-After": "1" });
    return;
  }
  const [code, detail] = describeFailure(kind);
  answerProblem(exchange, code, detail);
}

// True if a step has answered in place of the error.
function answerInstead(exchange: GateExchange, route: CompiledRoute): boolean {
  return route.steps.failureHooks.some((step) => step.answerFailure!(exchange));
}

/** True for a response of the type of Server-Sent Events. */
function isEventStream({ fields }: ResponseHead): boolean {
  const line = fields.first(Known.ContentType);
  if (line === -1) return false;
  const start = fields.valueStart(line);
  const end = start + EVENT_STREAM.length;
  if (end > fields.valueEnd(line)) return false;
  for (let at = start; at < end; at++) {
    if ((fields.bytes[at]! | 0x20) !== (EVENT_STREAM[at - start]! | 0x20)) return false;
  }
  return true;
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
