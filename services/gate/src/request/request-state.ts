// What the gateway remembers of the request under way on a connection; one object per connection, reused.
import type { Exchange, Tunnel } from "@platform/http1";
import { ForwardingFields } from "../client/forwarding-fields.ts";
import { RequestIds } from "../client/request-ids.ts";
import type { AdminCaller } from "../filter/admin-guard.ts";
import type { RouteCaller } from "../filter/admit-caller.ts";
import type { CompiledRoute, RouteTarget, SeriesCache } from "../route/compiled-route.ts";

/** A request with its answer and this record. */
export type GateExchange = Exchange<RequestState>;

/** Who called, on a route or on an own path. */
export type GateCaller = RouteCaller | AdminCaller;

const ANONYMOUS: GateCaller = { kind: "anonymous" };

/** The record of one connection's current request. */
export class RequestState {
  exchange: GateExchange | null = null;
  /** Counted as accepted beyond the connection bound. */
  isShed = false;
  readonly ids = new RequestIds();
  readonly forwarding = new ForwardingFields();
  methodIndex = 0;
  isIdempotent = false;
  route: CompiledRoute | null = null;
  series: SeriesCache | null = null;
  caller: GateCaller = ANONYMOUS;
  /** Authorization holds the operator's token, in whatever form: it must not go upstream. */
  holdsOperatorToken = false;
  /** Lines about the user for the upstream, each with its CRLF. */
  identityLines: Buffer | null = null;
  /** Normalised path and method name; read early, for a tunnel outlives its head. Empty where nobody asks. */
  path = "";
  method = "";
  startedAtEpochMs = 0;
  /** Max-Forwards as the upstream is to get it; empty where the client sent none. */
  maxForwards = "";
  target: RouteTarget | null = null;
  readonly tried: number[] = [];
  retries = 0;
  wasRefreshed = false;
  /** Error code of an answer that the gateway made. */
  code = "";
  /** The request was counted, logged and traced. */
  isRecorded = false;
  tunnel: Tunnel | null = null;
  // The ring of exchanges under way on this worker.
  previous: RequestState = this;
  next: RequestState = this;

  /** Forgets the last request. */
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
    // Setting the length would give the array's memory back each time.
    while (this.tried.length > 0) this.tried.pop();
    this.retries = 0;
    this.wasRefreshed = false;
    this.code = "";
    this.isRecorded = false;
    this.tunnel = null;
  }

  /** Joins the ring behind `head`. */
  link(head: RequestState): void {
    this.previous = head;
    this.next = head.next;
    head.next.previous = this;
    head.next = this;
  }

  /** Leaves the ring; harmless where it is in none. */
  unlink(): void {
    this.previous.next = this.next;
    this.next.previous = this.previous;
    this.previous = this;
    this.next = this;
  }
}
