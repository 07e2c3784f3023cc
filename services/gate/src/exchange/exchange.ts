// One request on its route: its state, the compiled route and the contract of the route's steps.
import {
  type Answer,
  type ContentFilter,
  type Exchange,
  type FailureKind,
  type ForwardTarget,
  ForwardingFields,
  type HeadWriter,
  type RequestEnd,
  RequestIds,
  type ResponseDraft,
  type ResponseFilter,
  type ResponseHead,
  type Tunnel,
} from "@platform/http1";
import type { CacheTicket } from "./cache-ticket.ts";
import type { ApiKeySpec, RouteKey, RouteSpec } from "../shared-state/index.ts";
import type { Balancer } from "../upstream/balancer.ts";
import type { Resilience } from "../upstream/resilience.ts";
import type { HeldPool } from "../upstream/pool-registry.ts";
import type { GateCaller, KnownCaller } from "./caller.ts";
import type { PathPatterns } from "./path-patterns.ts";
import type { AddressRateKey } from "./rate-key.ts";
import { ResponseFields } from "./response-fields.ts";
import type { RouteTarget } from "./route-target.ts";
import type { SeriesCache } from "./series-cache.ts";

/** An HTTP exchange that carries a {@link RequestState}. */
export type GateExchange = Exchange<RequestState>;

const ANONYMOUS: GateCaller = { kind: "anonymous" };

/** A copy of a request's head as the upstream receives it. */
export interface HeadCopy {
  /** Called for each attempt. The bytes are valid only during the call. */
  takeHead(bytes: Buffer): void;
}

/** The recording of one request and its response; created by the recording step. */
export interface Recording extends HeadCopy {
  /** Ends the recording, which is written if the exchange is complete. */
  finish(exchange: GateExchange, end: RequestEnd): void;
  /** The upstream's response has arrived: returns the observer of its content. */
  takeResponse(head: ResponseHead, hasContent: boolean): ContentFilter;
}

/** A request as its guest got it. */
export interface OriginalRequest {
  readonly method: string;
  readonly target: string;
  readonly fields: [name: string, value: string][];
  /** The client's body if the guest has replaced it. */
  readonly body: Buffer | undefined;
}

/** The WebAssembly guests of one request; created by their step. */
export interface ExchangeGuests {
  /** The guests that the request passes, for the access log. */
  readonly names: string;
  /** Time of their calls. */
  readonly usedMicroseconds: number;
  /** Equal for requests whose responses pass the same versions of the same guests. */
  readonly cacheScope: string;
  /** Set-Cookie for the client; undefined if it needs none. */
  readonly cookie: string | undefined;
  /** The request before a guest changed it, on routes that record; undefined if none has. */
  readonly original: OriginalRequest | undefined;
  /** Writes fields for the upstream that the request's head does not contain. */
  writeFields(writer: HeadWriter): void;
  /** Returns filters for the upstream's response, or answers instead of it. */
  filterResponse(draft: ResponseDraft): readonly ContentFilter[];
  /** Sends a response of the gateway past the guests, now or later; false if it does not pass them. */
  answer(answer: Answer): boolean;
  /** The connection has changed protocols. */
  onTunnel(): void;
  /** The request has ended. */
  finish(end: RequestEnd): void;
}

/** A request to a model that the gateway has read; created by its step. */
export interface ExchangeAi {
  /** Cost so far in USD, as a decimal number. */
  readonly costText: string;
  /** The member `ai` of the access log as JSON in ASCII. */
  describe(): string;
  /** Attributes of the span, without texts of the request or the response. */
  listAttributes(): readonly (readonly [name: string, value: string | number])[];
}

/** The models that a request may go to, on routes with `llm_routing`; created by the step of AI requests. */
export interface ExchangeModels {
  /** Index of the target of the present attempt. */
  readonly target: number;
  /**
   * Set by the forwarder: the target at this index for another attempt, null while its circuit is open. The request goes to
   * it then.
   */
  enter: ((index: number) => ForwardTarget | null) | null;
  /**
   * The present attempt has failed before any response, or was not made because a circuit is open (`undefined`): the target
   * of the other model, null if there is no further attempt.
   */
  onFailure(kind: FailureKind | undefined): ForwardTarget | null | Promise<ForwardTarget | null>;
}

/** A request without a client: see `detachRequest`. */
export interface DetachedRequest {
  readonly route: CompiledRoute;
  /** The step that it begins with. */
  readonly step: Step;
  /** True once that step has run. */
  hasBegun: boolean;
  /** Gives the state of the client's request to the exchange. */
  restore(exchange: GateExchange): void;
}

/** State of one connection's current request. */
export class RequestState {
  exchange: GateExchange | null = null;
  /** The request has no client; it is the only one of its connection. */
  detached: DetachedRequest | null = null;
  /** The connection exceeds `connectionsMax`: requests get 503. */
  isShed = false;
  readonly ids = new RequestIds();
  readonly forwarding = new ForwardingFields();
  methodIndex = 0;
  isIdempotent = false;
  route: CompiledRoute | null = null;
  series: SeriesCache | null = null;
  caller: GateCaller = ANONYMOUS;
  /** Outlives the request: the user of the connection's last one. */
  knownCaller: KnownCaller | null = null;
  /** Authorization contains the operator token in some form: it must not be forwarded. */
  holdsOperatorToken = false;
  /** Outlives the request: the key of the connection's last one under a limit by address. */
  addressKey: AddressRateKey | null = null;
  /** API key of a request that required one. */
  apiKey: ApiKeySpec | null = null;
  /** Identity fields for the upstream, each line with its CRLF. */
  identityLines: Buffer | null = null;
  /** Further fields for the upstream from the service that judged the request. */
  authLines: Buffer | null = null;
  /** Cookies for the upstream of a route with sign-in: all but the session. */
  cookies = "";
  /** The route's steps that let the request continue: from `stepsFrom` up to, and without, `stepsDone`. */
  stepsFrom = 0;
  stepsDone = 0;
  /** The request has matched {@link route} and passes its steps. */
  isInPipeline = false;
  /** Fields for the response, from steps; also added to responses of the gateway itself. */
  readonly responseFields = new ResponseFields();
  /** Normalized path and method name; copied early because a tunnel outlives its head. Empty if not needed. */
  path = "";
  method = "";
  startedAtEpochMs = 0;
  /** Max-Forwards for the upstream; empty if the client sent none. */
  maxForwards = "";
  target: RouteTarget | null = null;
  readonly tried: number[] = [];
  /** Index of the target that the client should get, -1: any. */
  preferredTarget = -1;
  retries = 0;
  wasRefreshed = false;
  /** The attempt finds out whether a target whose circuit is open is still failing. */
  isTrial = false;
  /** Error code if the gateway produced the response, with its detail and the request's method and path. */
  code = "";
  detail = "";
  sentMethod = "";
  sentPath = "";
  tunnel: Tunnel | null = null;
  /** The response is a stream of events, or the connection was upgraded: its duration says nothing about the upstream. */
  isStream = false;
  /** Storing and revalidating of the response, on routes with a cache. */
  cacheTicket: CacheTicket | null = null;
  /** The stored response's validators replace the client's conditions. */
  revalidates = false;
  /** Copies of the request for a mirror and for the recording. */
  mirrored: HeadCopy | null = null;
  recording: Recording | null = null;
  /** The WebAssembly guests, on routes that have some. */
  guests: ExchangeGuests | null = null;
  /** The request to a model, on AI routes; null for requests that the gateway does not read. */
  ai: ExchangeAi | null = null;
  /** The models that the request may go to, on routes with `llm_routing`. */
  models: ExchangeModels | null = null;
  /** Hash of the resource that an unsafe request changes, on routes with a cache. */
  changedResource: number | null = null;
  // Neighbors in the ring of this worker's active exchanges.
  previous: RequestState = this;
  next: RequestState = this;

  /** Resets the state for a new request. */
  begin(exchange: GateExchange): void {
    this.exchange = exchange;
    this.route = null;
    this.series = null;
    this.caller = ANONYMOUS;
    this.holdsOperatorToken = false;
    this.apiKey = null;
    this.identityLines = null;
    this.authLines = null;
    this.cookies = "";
    this.stepsFrom = 0;
    this.stepsDone = 0;
    this.isInPipeline = false;
    this.responseFields.clear();
    this.path = "";
    this.method = "";
    this.maxForwards = "";
    this.target = null;
    while (this.tried.length > 0) this.tried.pop();
    this.preferredTarget = -1;
    this.retries = 0;
    this.isStream = false;
    this.isTrial = false;
    this.wasRefreshed = false;
    this.code = "";
    this.detail = "";
    this.sentMethod = "";
    this.sentPath = "";
    this.tunnel = null;
    this.cacheTicket = null;
    this.revalidates = false;
    this.mirrored = null;
    this.recording = null;
    this.guests = null;
    this.ai = null;
    this.models = null;
    this.changedResource = null;
  }

  /** Inserts this state into the ring after `head`. */
  link(head: RequestState): void {
    this.previous = head;
    this.next = head.next;
    head.next.previous = this;
    head.next = this;
  }

  /** Removes this state from its ring; a no-op if it is in no ring. */
  unlink(): void {
    this.previous.next = this.next;
    this.next.previous = this.previous;
    this.previous = this;
    this.next = this;
  }
}

/** A filter that changes the head later: only then the steps behind it choose their filters. */
export interface DeferringFilter extends ContentFilter {
  /** `choose` returns the filters of the other steps, undefined if one of them has answered instead. */
  defer(choose: () => readonly ContentFilter[] | undefined): void;
}

/** An active or draining route. Created by `compileRoute`. */
export interface CompiledRoute {
  readonly key: RouteKey;
  readonly prefix: string;
  readonly host: string | undefined;
  readonly methods: readonly string[] | undefined;
  readonly patterns: PathPatterns | undefined;
  /** See `rankPattern`; undefined if the route is no variant. */
  readonly specificity: string | undefined;
  readonly spec: RouteSpec;
  readonly label: string;
  /** The label as a JSON string; empty without an access log. */
  readonly labelJson: string;
  readonly series: SeriesCache;
  readonly balancer: Balancer;
  /** Empty if a step answers every request. */
  readonly targets: readonly RouteTarget[];
  readonly pools: readonly HeldPool[];
  readonly steps: RouteSteps;
  /** Undefined if the route uses none of it. */
  readonly resilience: Resilience | undefined;
  /** Requests that have matched the route and have not ended. */
  inFlight: number;
  /** The route receives no new requests; its pools are released when no request is active. */
  isRemoved: boolean;
}

/** True: the request continues with the next step. False: this step answers it. */
export type StepResult = boolean;

/**
 * One step of a route. One object serves all requests of the route; the state of a request is in `exchange.userData`.
 *
 * A step refuses a request with a `PlatformError`, thrown or rejected, or answers it with the functions of `answers.ts` and
 * returns false. Fields for the response, whoever answers, are added to `userData.responseFields`.
 */
export interface Step {
  /**
   * Judges a request. Returns a promise only if it must wait: if the request has ended when the promise resolves, the
   * route does not continue.
   */
  run(exchange: GateExchange, route: CompiledRoute): StepResult | Promise<StepResult>;
  /** Appends fields to the upstream request, once per attempt. */
  onRequestHead?(exchange: GateExchange, writer: HeadWriter): void;
  /** Appends fields to the upstream's response. */
  onResponseHead?(exchange: GateExchange, head: ResponseHead, writer: HeadWriter): void;
  /**
   * Returns filters for the upstream's response, or answers instead of it. The steps nearest to the upstream come first, as
   * do their filters.
   */
  filterResponse?(
    exchange: GateExchange,
    draft: ResponseDraft,
    head: ResponseHead,
  ): readonly ContentFilter[];
  /** Answers in place of the error of an upstream that failed, or whose circuit is open; false if it does not. */
  answerFailure?(exchange: GateExchange): boolean;
  /** Called once for each request that this step let continue, when the request has ended. */
  finish?(exchange: GateExchange, end: RequestEnd): void;
  /** The request ended while `run` was waiting, and `run` then let it continue: releases what it holds. */
  abandon?(): void;
  /** The route was removed and its last request has ended. */
  close?(): void;
}

/** The steps of one route in order, and those with hooks. */
export class RouteSteps implements ResponseFilter<GateExchange> {
  readonly list: readonly Step[];
  readonly requestHooks: readonly Step[];
  readonly responseHooks: readonly Step[];
  readonly failureHooks: readonly Step[];
  /** True if responses pass a filter of a step. */
  readonly hasFilters: boolean;
  readonly #filters: readonly Step[];
  readonly #hasFinish: boolean;

  constructor(list: readonly Step[]) {
    this.list = list;
    this.requestHooks = list.filter((step) => step.onRequestHead !== undefined);
    this.responseHooks = list.filter((step) => step.onResponseHead !== undefined);
    this.failureHooks = list.filter((step) => step.answerFailure !== undefined);
    this.#filters = list.filter((step) => step.filterResponse !== undefined).reverse();
    this.hasFilters = this.#filters.length > 0;
    this.#hasFinish = list.some((step) => step.finish !== undefined);
  }

  onResponse(
    exchange: GateExchange,
    draft: ResponseDraft,
    head: ResponseHead,
  ): readonly ContentFilter[] {
    return this.#chooseFilters(exchange, draft, head, 0) ?? [];
  }

  /** The filters of the steps from `from` on; undefined if one of them answers instead. */
  #chooseFilters(
    exchange: GateExchange,
    draft: ResponseDraft,
    head: ResponseHead,
    from: number,
  ): ContentFilter[] | undefined {
    const filters: ContentFilter[] = [];
    for (let at = from; at < this.#filters.length; at++) {
      const chosen = this.#filters[at]!.filterResponse!(exchange, draft, head);
      if (exchange.answered) return undefined;
      filters.push(...chosen);
      const last = chosen.at(-1);
      if (last === undefined || !("defer" in last)) continue;
      (last as DeferringFilter).defer(() => this.#chooseFilters(exchange, draft, head, at + 1));
      break;
    }
    return filters;
  }

  /** Finishes the steps that a request has passed, the last one first. */
  finish(exchange: GateExchange, end: RequestEnd): void {
    if (!this.#hasFinish) return;
    const { stepsFrom, stepsDone } = exchange.userData;
    for (let at = stepsDone - 1; at >= stepsFrom; at--) this.list[at]!.finish?.(exchange, end);
  }

  /** Closes all steps. */
  close(): void {
    for (const step of this.list) step.close?.();
  }
}
