// Handles each request: reads its IDs and path, then passes it to its internal route or to the steps of its route.
import {
  type HexPool,
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
import { answerProblem, readMethod } from "../exchange/answers.ts";
import type { GateCaller } from "../exchange/caller.ts";
import type { CompiledRoute, DetachedRequest, GateExchange } from "../exchange/exchange.ts";
import { SeriesCache } from "../exchange/series-cache.ts";
import { findBareRoute } from "../route/bare-route.ts";
import { isLocalRequest } from "../filter/identity/admin-guard.ts";
import { admitByGlobals } from "../filter/identity/admit-caller.ts";
import { PathScan, type PathFault } from "../exchange/path-scan.ts";
import { type InternalRoute, METHOD_LABELS, type MetricBlock } from "../shared-state/index.ts";
import type { ErrorLog } from "./error-log.ts";
import type { ActiveConfig } from "./active-config.ts";
import type { Forwarder } from "./forwarder.ts";
import { InternalHandler } from "./internal-handler.ts";
import { Pipeline } from "./pipeline.ts";
import { describeFault, type RequestFault } from "./request-fault.ts";
import type { Probes } from "./probes.ts";
import type { Recorder } from "./recorder.ts";
import { settle } from "./settle.ts";

/** Options of {@link RequestHandler}. */
export interface RequestHandlerOptions {
  config: ActiveConfig;
  probes: Probes;
  forwarder: Forwarder;
  recorder: Recorder;
  block: MetricBlock;
  hexPool: HexPool;
  errorLog: ErrorLog;
  /** Called when the last request of a removed route has ended. */
  onRouteIdle: (route: CompiledRoute) => void;
  /** Called when a request fails inside the gateway. */
  onError: (error: unknown) => void;
}

const LOCAL: GateCaller = { kind: "local" };
const EMPTY_ANSWER = prepareAnswer({ status: 204 });
const ROOT = Buffer.from("/");
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
  readonly #pipeline: Pipeline;
  readonly #internal: InternalHandler;

  readonly #onEnd = (exchange: GateExchange, end: RequestEnd): void => {
    const { recorder, errorLog } = this.#options;
    const state = exchange.userData;
    if (state.isInPipeline) this.#pipeline.finish(exchange, state.route!, end);
    else state.unlink();
    recorder.record(exchange, end);
    errorLog.note(exchange, end);
  };

  // Clients and access logs are counted and written by their own requests.
  readonly #onDetachedEnd = (exchange: GateExchange, end: RequestEnd): void => {
    const state = exchange.userData;
    if (state.isInPipeline) this.#pipeline.finish(exchange, state.route!, end);
    this.#options.errorLog.note(exchange, end);
  };

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
    this.#pipeline = new Pipeline(options);
    this.#internal = new InternalHandler({
      ...options,
      shed: (exchange) => this.#shed(exchange),
      onBadRequest: () => this.#count(this.#badAt),
    });
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
    state.methodIndex = METHOD_INDICES[head.methodId]!;
    state.isIdempotent = isIdempotent(head.methodId);
    state.ids.read(head.fields, hexPool);
    if (state.detached !== null) {
      this.#handleDetached(exchange, state.detached);
      return;
    }
    exchange.onEnd = this.#onEnd;
    this.#count(this.#requestsAt);
    state.forwarding.read(exchange.connection, head, config.trusted);
    state.series = this.#noRoute;
    const fault = this.#readPath(exchange);
    if (fault !== null) {
      this.#refuse(exchange, fault);
      return;
    }
    const internal = this.#findInternal(exchange, this.#scan);
    if (internal !== undefined) this.#internal.handle(exchange, internal, this.#scan);
    else if (state.isShed) this.#shed(exchange);
    else this.#handleRouted(exchange);
  }

  // The paths of the console are its own on its own hosts only.
  #findInternal(exchange: GateExchange, scan: PathScan): InternalRoute | undefined {
    const { table, globals } = this.#options.config;
    const found = table.findInternalRoute(scan);
    if (found === undefined || found.access !== "console") return found;
    return globals.console?.hosts.includes(readHost(exchange)) === true ? found : undefined;
  }

  // Pages at a host of the console share its origin: routes of all hosts are not served there.
  #findRoute(scan: PathScan, host: string): CompiledRoute | undefined {
    const { table, globals } = this.#options.config;
    const { console } = globals;
    return console?.ownsHosts === true && console.hosts.includes(host)
      ? table.findRouteOfHost(scan, host)
      : table.findRoute(scan, host);
  }

  #handleDetached(exchange: GateExchange, detached: DetachedRequest): void {
    exchange.onEnd = this.#onDetachedEnd;
    // The pools of a removed route may be closed.
    if (detached.route.isRemoved) exchange.respond(EMPTY_ANSWER);
    else {
      detached.restore(exchange);
      this.#pipeline.startDetached(exchange, detached);
    }
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
      this.#admitUnrouted(exchange, () => exchange.respond(EMPTY_ANSWER));
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
    const needsHost = config.table.hasHosts || config.globals.console?.ownsHosts === true;
    const host = needsHost ? readHost(exchange) : "";
    let route = this.#findRoute(scan, host);
    if (scan.hasParameter) {
      const bare = this.#findBareRoute(exchange, route, host);
      if (bare === "refused") {
        this.#refuse(exchange, "path-parameter-hides-route");
        return;
      }
      route = bare;
    }
    if (route === undefined) {
      this.#answerUnrouted(exchange);
      return;
    }
    if (config.table.hasVariants) {
      const matched = scan.hasParameter ? this.#bareScan! : scan;
      const chosen = this.#chooseVariant(exchange, route, matched);
      if (chosen === undefined) {
        this.#answerMethodNotAllowed(exchange, route, matched);
        return;
      }
      route = chosen;
    }
    state.route = route;
    state.series = route.series;
    if (recorder.needsRequestLine(exchange)) this.#keepRequestLine(exchange);
    if (route.spec.rawPath) {
      const isLiteral = scan.startsAsSent(route.prefix.length);
      if (!isLiteral || !scan.isRawSafe(route.prefix.length)) {
        this.#refuse(exchange, isLiteral ? "climbs-above-root" : "prefix-not-literal");
        return;
      }
    } else if (scan.hasEncodedSeparator) {
      this.#refuse(exchange, "encoded-separator");
      return;
    } else if (!scan.clean) {
      exchange.forwardPath = scan.readPath();
    }
    this.#pipeline.start(exchange, route);
  }

  #findBareRoute(
    exchange: GateExchange,
    literal: CompiledRoute | undefined,
    host: string,
  ): CompiledRoute | undefined | "refused" {
    const { table } = this.#options.config;
    const path = {
      table,
      sent: this.#scan,
      literal,
      method: table.hasVariants ? readMethod(exchange) : "",
      findRoute: (scan: PathScan) => this.#findRoute(scan, host),
      isInternal: (scan: PathScan) => this.#findInternal(exchange, scan) !== undefined,
    };
    return findBareRoute(path, (this.#bareScan ??= new PathScan()));
  }

  #answerUnrouted(exchange: GateExchange): void {
    const { globals, control } = this.#options.config;
    if (this.#isLocalPage(exchange)) {
      exchange.userData.caller = LOCAL;
      control.start(exchange);
      return;
    }
    const code = globals.noRouteStatus === 404 ? "not_found" : "route_not_found";
    this.#admitUnrouted(exchange, () => {
      answerProblem(exchange, code, "No route matches this host and path.");
    });
  }

  // A preflight belongs to the route of the method that it asks about.
  #chooseVariant(
    exchange: GateExchange,
    route: CompiledRoute,
    scan: PathScan,
  ): CompiledRoute | undefined {
    const { table } = this.#options.config;
    const { head } = exchange;
    const chosen = table.chooseVariant(route, scan, readMethod(exchange));
    if (head.methodId !== Method.OPTIONS || chosen?.methods !== undefined) return chosen;
    const wanted = table.chooseVariant(
      route,
      scan,
      head.fields.find("access-control-request-method") ?? "",
    );
    return wanted?.spec.steps.cors === undefined ? chosen : wanted;
  }

  #answerMethodNotAllowed(exchange: GateExchange, route: CompiledRoute, scan: PathScan): void {
    const allow = this.#options.config.table.listMethods(route, scan).join(", ");
    this.#admitUnrouted(exchange, () => {
      const detail = "The route does not accept this method.";
      answerProblem(exchange, "method_not_allowed", detail, { Allow: allow });
    });
  }

  // The index, and the way to the console: only for this machine, so that foreign hosts see neither.
  #isLocalPage({ head, connection }: GateExchange): boolean {
    const { globals } = this.#options.config;
    if (head.methodId !== Method.GET && head.methodId !== Method.HEAD) return false;
    const path = this.#scan.readPath();
    const isPage =
      (globals.hasIndex && path === "/") ||
      (globals.hasConsole && (path === "/ui" || path.startsWith("/ui/")));
    return isPage && isLocalRequest(head, connection.remoteAddress);
  }

  // Callers without access to the gateway must not learn which routes exist.
  #admitUnrouted(exchange: GateExchange, answer: () => void): void {
    const { config, onError } = this.#options;
    const identity = config.identity.current;
    if (identity.isOpen) {
      answer();
      return;
    }
    settle(exchange, () => admitByGlobals(exchange.head, identity), { onResult: answer, onError });
  }

  #keepRequestLine(exchange: GateExchange): void {
    const state = exchange.userData;
    state.path = this.#scan.readPath();
    state.method = readMethod(exchange);
    state.startedAtEpochMs = Date.now();
  }

  #count(at: number): void {
    const { values } = this.#options.block;
    values[at] = values[at]! + 1;
  }
}

function readHost(exchange: GateExchange): string {
  const { head } = exchange;
  if (head.authorityStart !== -1) {
    return readHostName(head.bytes.toString("latin1", head.authorityStart, head.authorityEnd));
  }
  return readHostName(head.fields.get(Known.Host) ?? "");
}
