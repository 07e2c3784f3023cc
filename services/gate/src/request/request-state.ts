// State of the current request of a connection; one object per connection, reused.
import { ForwardingFields, RequestIds, type Exchange, type Tunnel } from "@platform/http1";
import type { AdminCaller } from "../filter/admin-guard.ts";
import type { RouteCaller } from "../filter/admit-caller.ts";
import type { CompiledRoute, RouteTarget, SeriesCache } from "../route/compiled-route.ts";

/** An HTTP exchange that carries a {@link RequestState}. */
export type GateExchange = Exchange<RequestState>;

/** The caller of a proxied or an internal route. */
export type GateCaller = RouteCaller | AdminCaller;

const ANONYMOUS: GateCaller = { kind: "anonymous" };

/** State of one connection's current request. */
export class RequestState {
  exchange: GateExchange | null = null;
  /** The connection exceeds `connectionsMax`: requests get 503. */
  isShed = false;
  readonly ids = new RequestIds();
  readonly forwarding = new ForwardingFields();
  methodIndex = 0;
  isIdempotent = false;
  route: CompiledRoute | null = null;
  series: SeriesCache | null = null;
  caller: GateCaller = ANONYMOUS;
  /** Authorization contains the operator token in some form: it must not be forwarded. */
  holdsOperatorToken = false;
  /** Identity fields for the upstream, each line with its CRLF. */
  identityLines: Buffer | null = null;
  /** Normalized path and method name; copied early because a tunnel outlives its head. Empty if not needed. */
  path = "";
  method = "";
  startedAtEpochMs = 0;
  /** Max-Forwards for the upstream; empty if the client sent none. */
  maxForwards = "";
  target: RouteTarget | null = null;
  readonly tried: number[] = [];
  retries = 0;
  wasRefreshed = false;
  /** Error code if the gateway produced the response, with its detail and the request's method and path. */
  code = "";
  detail = "";
  sentMethod = "";
  sentPath = "";
  tunnel: Tunnel | null = null;
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
    this.identityLines = null;
    this.path = "";
    this.method = "";
    this.maxForwards = "";
    this.target = null;
    // Setting `length` would free the array's memory each time.
    while (this.tried.length > 0) this.tried.pop();
    this.retries = 0;
    this.wasRefreshed = false;
    this.code = "";
    this.detail = "";
    this.sentMethod = "";
    this.sentPath = "";
    this.tunnel = null;
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
