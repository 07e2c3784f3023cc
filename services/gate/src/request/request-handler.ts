// Handles each request: reads its IDs and path, finds its internal or proxied route, authorizes and forwards it.
import { isDeepStrictEqual } from "node:util";
import {
  type HexPool,
  joinLines,
  Known,
  Method,
  type PreparedAnswer,
  type RequestEnd,
  TargetForm,
  isIdempotent,
  nameOfMethod,
  prepareAnswer,
  readHostName,
} from "@platform/http1";
import { toPlatformError } from "@platform/kernel/errors";
import { admitAdmin, isLocalRequest, isOpenTo } from "../filter/admin-guard.ts";
import { admitAnyone, admitByGlobals, admitByRoute } from "../filter/admit-caller.ts";
import type { IdentityLines } from "../filter/identity.ts";
import { type CompiledRoute, SeriesCache } from "../route/compiled-route.ts";
import { PathScan, type PathFault } from "../route/path-scan.ts";
import { METHOD_LABELS, type MetricBlock, type InternalRoute } from "../shared-state/index.ts";
import type { Forwarder } from "./forwarder.ts";
import { answerError, answerProblem, readMethod } from "./answers.ts";
import type { ErrorLog } from "./error-log.ts";
import type { ActiveConfig } from "./active-config.ts";
import { describeFault, type RequestFault } from "./request-fault.ts";
import type { Probes } from "./probes.ts";
import type { Recorder } from "./recorder.ts";
import type { GateCaller, GateExchange } from "./request-state.ts";

/** Options of {@link RequestHandler}. */
export interface RequestHandlerOptions {
  config: ActiveConfig;
  probes: Probes;
  forwarder: Forwarder;
  recorder: Recorder;
  block: MetricBlock;
  hexPool: HexPool;
  identityLines: IdentityLines;
  errorLog: ErrorLog;
  /** Called when a request fails inside the gateway. */
  onError: (error: unknown) => void;
}

const LOCAL: GateCaller = { kind: "local" };
const ROOT = Buffer.from("/");
const OPTIONS_ANSWER = prepareAnswer({ status: 204 });
const SHED_ANSWER: PreparedAnswer = prepareAnswer({
  status: 503,
  headers: [
    ["Content-Type", "application/problem+json"],
    ["Retry-After", "1"],
  ],
  body: '{"type":"urn:platform:error:overloaded","title":"Overloaded","status":503,"detail":"The gateway has too many connections.","instance":"","code":"overloaded","error":"The gateway has too many connections.","trace_id":""}',
});

// Index into METHOD_LABELS by the engine's method ID.
const METHODS = Object.values(Method);
const METHOD_INDICES = Uint8Array.from(METHODS, (id) =>
  Math.max(0, METHOD_LABELS.indexOf(nameOfMethod(id) ?? "OTHER")),
);

/** Handler of one worker's server. */
export class RequestHandler {
  readonly #options: RequestHandlerOptions;
  readonly #scan = new PathScan();
  #bareScan: PathScan | undefined;
  readonly #requestsAt: number;
  readonly #badAt: number;
  readonly #shedAt: number;
  readonly #noRoute = new SeriesCache(0);
  readonly #internalSeries = new WeakMap<InternalRoute, SeriesCache>();

  readonly #onEnd = (exchange: GateExchange, end: RequestEnd): void => {
    const { forwarder, recorder } = this.#options;
    const state = exchange.userData;
    if (state.target !== null) forwarder.finish(state, end);
    else state.unlink();
    recorder.record(exchange, end);
    this.#options.errorLog.note(exchange, end);
  };

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
    this.#requestsAt = options.block.findCounter("requests");
    this.#badAt = options.block.findCounter("badRequests");
    this.#shedAt = options.block.findCounter("shed");
  }

  /** Handles one request. */
  handle(exchange: GateExchange): void {
    const { head } = exchange;
    const state = exchange.userData;
    const { config, hexPool } = this.#options;
    state.begin(exchange);
    exchange.onEnd = this.#onEnd;
    this.#count(this.#requestsAt);
    state.methodIndex = METHOD_INDICES[head.methodId]!;
    state.isIdempotent = isIdempotent(head.methodId);
    state.ids.read(head.fields, hexPool);
    state.forwarding.read(exchange.connection, head, config.trusted);
    state.series = this.#noRoute;
    const fault = this.#readPath(exchange);
    if (fault !== null) {
      this.#refuse(exchange, fault);
      return;
    }
    const internal = config.table.findInternalRoute(this.#scan);
    if (internal !== undefined) this.#handleInternal(exchange, internal);
    else if (state.isShed) this.#shed(exchange);
    else this.#handleRouted(exchange);
  }

  #readPath(exchange: GateExchange): PathFault | null {
    const { head } = exchange;
    const { prefixBytesMax } = this.#options.config.table;
    // The empty path of `http://host` means `/` (RFC 9112 section 3.2.1).
    if (head.pathStart === head.pathEnd && head.targetForm === TargetForm.Absolute) {
      return this.#scan.read(ROOT, 0, 1, prefixBytesMax);
    }
    return this.#scan.read(head.bytes, head.pathStart, head.targetEnd, prefixBytesMax);
  }

  #refuse(exchange: GateExchange, fault: RequestFault): void {
    if (fault === "not-origin-form" && exchange.head.methodId === Method.OPTIONS) {
      this.#admitUnrouted(exchange, () => exchange.respond(OPTIONS_ANSWER));
      return;
    }
    this.#count(this.#badAt);
    answerProblem(exchange, "bad_request", describeFault(fault));
  }

  #shed(exchange: GateExchange): void {
    this.#count(this.#shedAt);
    exchange.userData.code = "overloaded";
    exchange.respond(SHED_ANSWER);
  }

  #handleRouted(exchange: GateExchange): void {
    const state = exchange.userData;
    const { config, recorder } = this.#options;
    const scan = this.#scan;
    const host = config.table.hasHosts ? readHost(exchange) : "";
    let route = config.table.findRoute(scan, host);
    if (scan.hasParameter) {
      const bare = this.#findBareRoute(exchange, route, host);
      if (bare === "refused") return;
      route = bare;
    }
    if (route === undefined) {
      this.#answerUnrouted(exchange);
      return;
    }
    state.route = route;
    state.series = route.series;
    if (recorder.needsRequestLine(exchange)) this.#keepRequestLine(exchange);
    if (route.spec.rawPath) {
      if (!scan.isRawSafe(route.encodedPrefix.bytes.length)) {
        this.#refuse(exchange, "climbs-above-root");
        return;
      }
    } else if (scan.hasEncodedSeparator) {
      this.#refuse(exchange, "encoded-separator");
      return;
    } else if (!scan.clean) {
      exchange.forwardPath = scan.readPath();
    }
    this.#admit(exchange, route);
  }

  /**
   * The route of a path with segment parameters (`;v=1`): the one that matches without them, because many upstreams drop
   * them before they look for a resource. Refused if the two paths differ in access control.
   */
  #findBareRoute(
    exchange: GateExchange,
    literal: CompiledRoute | undefined,
    host: string,
  ): CompiledRoute | undefined | "refused" {
    const { table } = this.#options.config;
    const scan = (this.#bareScan ??= new PathScan());
    const path = this.#scan.readBarePath();
    const fault = scan.read(path, 0, path.length, table.prefixBytesMax);
    const bare = fault === null ? table.findRoute(scan, host) : undefined;
    const isOwn = fault === null && table.findInternalRoute(scan) !== undefined;
    if (fault === null && !isOwn && bare === literal) return literal;
    if (!isOwn && bare !== undefined && isSameEntry(literal, bare)) return bare;
    this.#refuse(exchange, "path-parameter-hides-route");
    return "refused";
  }

  #answerUnrouted(exchange: GateExchange): void {
    const { globals, control } = this.#options.config;
    if (globals.hasIndex && this.#isLocalIndex(exchange)) {
      exchange.userData.caller = LOCAL;
      control.start(exchange);
      return;
    }
    const code = globals.noRouteStatus === 404 ? "not_found" : "route_not_found";
    this.#admitUnrouted(exchange, () => {
      answerProblem(exchange, code, "No route matches this host and path.");
    });
  }

  #isLocalIndex({ head, connection }: GateExchange): boolean {
    const isRead = head.methodId === Method.GET || head.methodId === Method.HEAD;
    return (
      isRead && this.#scan.readPath() === "/" && isLocalRequest(head, connection.remoteAddress)
    );
  }

  // Callers without access to the gateway must not learn which routes exist.
  #admitUnrouted(exchange: GateExchange, answer: () => void): void {
    const { identity } = this.#options.config;
    if (identity.isOpen) {
      answer();
      return;
    }
    this.#settle(exchange, () => admitByGlobals(exchange.head, identity), answer);
  }

  #keepRequestLine(exchange: GateExchange): void {
    const state = exchange.userData;
    state.path = this.#scan.readPath();
    state.method = readMethod(exchange);
    state.startedAtEpochMs = Date.now();
  }

  #admit(exchange: GateExchange, route: CompiledRoute): void {
    const { identity } = this.#options.config;
    const { auth } = route.spec;
    if (auth.type !== "bearer" && identity.isOpen) {
      this.#forward(exchange, route);
      return;
    }
    const { head } = exchange;
    const then = (caller: GateCaller): void => {
      const state = exchange.userData;
      state.caller = caller;
      state.holdsOperatorToken =
        caller.kind === "operator" ||
        (auth.type === "none" && identity.holdsOperatorToken(head.fields));
      if (caller.kind === "user") {
        state.identityLines = this.#options.identityLines.format(caller.claims);
      }
      this.#forward(exchange, route);
    };
    switch (auth.type) {
      case "none":
        this.#settle(exchange, () => admitAnyone(head, identity), then);
        return;
      case "inherit":
        this.#settle(exchange, () => admitByGlobals(head, identity), then);
        return;
      case "bearer":
        this.#settle(exchange, () => admitByRoute(head, auth, route.verify!), then);
        return;
      default:
        auth satisfies never;
    }
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
    if (methodId === Method.OPTIONS) exchange.respond(OPTIONS_ANSWER);
    else answerProblem(exchange, "not_implemented", "The gateway does not answer TRACE.");
    return true;
  }

  #handleInternal(exchange: GateExchange, internal: InternalRoute): void {
    const state = exchange.userData;
    const { config, probes } = this.#options;
    if (internal.metricsId !== undefined)
      state.series = this.#findInternalSeries(internal, internal.metricsId);
    if (internal.access === "probe") {
      probes.answer(exchange, internal.path);
      return;
    }
    if (state.isShed) {
      this.#shed(exchange);
      return;
    }
    if (this.#scan.hasEncodedSeparator) {
      this.#refuse(exchange, "encoded-separator");
      return;
    }
    if (!this.#scan.clean) exchange.forwardPath = this.#scan.readPath();
    const { head, connection } = exchange;
    if (isOpenTo(internal.access, head, connection.remoteAddress, config.identity)) {
      state.caller = LOCAL;
      config.control.start(exchange);
      return;
    }
    this.#settle(
      exchange,
      () => admitAdmin(head, connection.remoteAddress, config.identity),
      (caller) => {
        state.caller = caller;
        // A stream of the admin API ends when its caller's token is revoked.
        this.#options.forwarder.enterInternal(state);
        config.control.start(exchange);
      },
    );
  }

  // Continues synchronously if the verdict is known, otherwise when it is available and the request still exists.
  #settle<T>(exchange: GateExchange, judge: () => T | Promise<T>, then: (value: T) => void): void {
    let verdict: T | Promise<T>;
    try {
      verdict = judge();
    } catch (error) {
      answerError(exchange, toPlatformError(error));
      return;
    }
    if (!(verdict instanceof Promise)) {
      then(verdict);
      return;
    }
    const { sequence } = exchange;
    const isOver = (): boolean => exchange.sequence !== sequence || exchange.aborted;
    const proceed = async (): Promise<void> => {
      let value: T;
      try {
        value = await verdict;
      } catch (error) {
        if (!isOver()) answerError(exchange, toPlatformError(error));
        return;
      }
      if (!isOver()) then(value);
    };
    proceed().catch((error: unknown) => {
      this.#options.onError(error);
      if (!isOver()) exchange.destroy();
    });
  }

  #findInternalSeries(internal: InternalRoute, metricsId: number): SeriesCache {
    let series = this.#internalSeries.get(internal);
    if (series === undefined) {
      series = new SeriesCache(metricsId);
      this.#internalSeries.set(internal, series);
    }
    return series;
  }

  #count(at: number): void {
    const { values } = this.#options.block;
    values[at] = values[at]! + 1;
  }
}

// The prefix can only be stripped from, or a raw path forwarded below, a path that literally starts with it.
function isSameEntry(literal: CompiledRoute | undefined, bare: CompiledRoute): boolean {
  const { auth, stripPrefix, rawPath } = bare.spec;
  if (stripPrefix || rawPath) return false;
  return literal === undefined || isDeepStrictEqual(literal.spec.auth, auth);
}

function readHost(exchange: GateExchange): string {
  const { head } = exchange;
  if (head.authorityStart !== -1) {
    return readHostName(head.bytes.toString("latin1", head.authorityStart, head.authorityEnd));
  }
  return readHostName(head.fields.get(Known.Host) ?? "");
}
