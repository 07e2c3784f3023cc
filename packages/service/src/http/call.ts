// A request in flight: the exchange, the request of the handler, and its end.
import { Known, type Exchange } from "@platform/http1";
import type { BodyReservation, Peer } from "@platform/kernel/http-parts";
import type { Caller } from "@platform/kernel/identity";
import type { Logger } from "@platform/kernel/log";
import {
  formatTraceparent,
  parseTraceContext,
  type Span,
  type Tracer,
} from "@platform/kernel/trace";
import { parseCookies } from "../request/cookies.ts";
import { RequestHeaders } from "../request/headers.ts";
import type { ServiceRequest } from "../request/request.ts";
import type { ServedRoute } from "./served-route.ts";

const ANONYMOUS: Caller = { kind: "anonymous" };
const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/** Services of all calls. */
export interface CallContext {
  readonly tracer: Tracer;
  readonly log: Logger;
}

/** One request and the state of its answer. Handlers see it as a `ServiceRequest`. */
export class Call implements ServiceRequest<string, unknown, unknown> {
  readonly exchange: Exchange;
  readonly span: Span;
  readonly method: string;
  readonly path: string;
  readonly headers: RequestHeaders;
  /** Null until the router has found it. */
  route: ServedRoute | null = null;
  params: Readonly<Record<string, string>> = NO_PARAMS;
  body: unknown = undefined;
  caller: Caller = ANONYMOUS;
  /** The answer is complete, or the client has disconnected. */
  isOver = false;
  /** True for paths of the server, which programs read every second: logged at level debug. */
  isRoutine = false;
  /** Error of the handler, for the log. */
  error: unknown = undefined;
  reservation: BodyReservation | undefined;
  /** Monotonic ms after which the handler is too late. */
  deadlineMs = Infinity;

  readonly #log: Logger;
  readonly #rawQuery: string;
  #parsedQuery: unknown = undefined;
  #abort: AbortController | undefined;
  #isAborted = false;
  #cookies: Readonly<Record<string, string>> | undefined;
  #ownLog: Logger | undefined;
  readonly #onOver: (() => void)[] = [];

  constructor(exchange: Exchange, { tracer, log }: CallContext) {
    const { head } = exchange;
    const { fields } = head;
    this.exchange = exchange;
    this.#log = log;
    this.method = head.method;
    this.path = head.pathString();
    this.#rawQuery = head.queryString() ?? "";
    this.headers = new RequestHeaders(fields.bytes.toString("latin1", fields.start, fields.end));
    const parent = fields.has(Known.Traceparent)
      ? parseTraceContext(fields.get(Known.Traceparent), fields.get(Known.Tracestate))
      : undefined;
    this.span = tracer.startSpan({ name: this.method, kind: "server", parent });
  }

  /** `file:line:column` of the route's declaration; "" for paths without a route. */
  get declaredAt(): string {
    return this.route?.declaredAt ?? "";
  }

  get query(): unknown {
    return (this.#parsedQuery ??= new URLSearchParams(this.#rawQuery));
  }

  /** Replaces the query by the output of its schema. */
  setQuery(query: unknown): void {
    this.#parsedQuery = query;
  }

  get cookies(): Readonly<Record<string, string>> {
    return (this.#cookies ??= parseCookies(this.headers.get("cookie")));
  }

  get remoteAddress(): string {
    return this.exchange.connection.remoteAddress;
  }

  /** Services listen on TCP only; without an address, the connection was lost before it could be read. */
  get peer(): Peer {
    const { remoteAddress } = this;
    return remoteAddress === "" ? { kind: "unknown" } : { kind: "tcp", address: remoteAddress };
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#isAborted) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  get traceId(): string {
    return this.span.context.traceId;
  }

  get traceparent(): string {
    return formatTraceparent(this.span.context);
  }

  get log(): Logger {
    const { traceId, spanId } = this.span.context;
    return (this.#ownLog ??= this.#log.child({ trace_id: traceId, span_id: spanId }));
  }

  /** Aborts `signal`. */
  abort(reason: Error): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#abort?.abort(reason);
  }

  /** Calls `callback` when the call is over. */
  onOver(callback: () => void): void {
    if (this.isOver) callback();
    else this.#onOver.push(callback);
  }

  /** The request has ended. */
  finish(): void {
    this.isOver = true;
    this.reservation?.release();
    for (const callback of this.#onOver.splice(0)) callback();
  }
}
