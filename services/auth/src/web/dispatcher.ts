// Receives all requests: OAuth and the pages answer theirs on node's own objects, the API answers the rest.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import {
  createObserver,
  startScope,
  type Api,
  type ApiOptions,
  type Scope,
} from "@platform/kernel/http";
import { runInTrace } from "@platform/kernel/trace";
import { readHeaders, readPath } from "./request.ts";
import { Router, type NodeHandler } from "./router.ts";
import { TRANSPORT_SECURITY } from "./security-headers.ts";

/** Targets of the dispatcher. */
export interface Targets {
  api: Api;
  handlers: readonly NodeHandler[];
  /** Answers a browser that requests a page that does not exist. */
  showMissing(request: IncomingMessage, response: ServerResponse): void;
  /** Handles upgrade requests. */
  onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/** Options of the dispatcher, which measures, traces and logs requests in the same way as the API. */
export interface DispatcherOptions extends Pick<
  ApiOptions,
  "metrics" | "httpMetrics" | "tracer" | "logger" | "clock"
> {
  /** True if the public URL is https: browsers must use https from then on. */
  isSecure: boolean;
  /** Routes that other services request every second. */
  routineRoutes: ReadonlySet<string>;
}

/** Paths of the API. */
const API_PREFIXES = ["/api/", "/console/", "/ui/"];
const PROBE_PATHS: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

/**
 * Answers 503 until `open` is called: the port, which the issuer may depend on, is known only once the listener is
 * bound.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #observe: ReturnType<typeof createObserver>;
  #targets: Targets | undefined;
  #router = new Router([]);

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#observe = createObserver(options);
  }

  /** Starts to dispatch requests. */
  open(targets: Targets): void {
    this.#targets = targets;
    this.#router = new Router(targets.handlers);
  }

  /** For `listenHttp`. */
  readonly onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (this.#targets === undefined) socket.destroy();
    else this.#targets.onUpgrade(request, socket, head);
  };

  /** For `listenHttp`. */
  readonly intercept = (request: IncomingMessage, response: ServerResponse): boolean => {
    if (this.#targets === undefined) {
      response.writeHead(503, { "Retry-After": "1", "Content-Length": "0" }).end();
      return true;
    }
    if (this.#options.isSecure) response.setHeader("Strict-Transport-Security", TRANSPORT_SECURITY);
    const path = readPath(request);
    const match = this.#router.find(path);
    if (match !== undefined) {
      const { route, handler } = match;
      const { context } = this.#follow(request, response, path, route).span;
      runInTrace(context, () => handler.handle(request, response, path, route));
      return true;
    }
    if (!isMissingPage(request, path)) return false;
    this.#follow(request, response, path, "unmatched");
    this.#targets.showMissing(request, response);
    return true;
  };

  /** For `listenHttp`. */
  readonly fetch: Api["fetch"] = (request, bindings) => this.#targets!.api.fetch(request, bindings);

  #follow(request: IncomingMessage, response: ServerResponse, path: string, route: string): Scope {
    const { method = "GET", socket } = request;
    const started = startScope(this.#options, method, path, readHeaders(request), socket);
    // Paths contain ids of authorizations, which must not be logged.
    const scope = {
      ...started,
      askedPath: route,
      route,
      isRoutine: this.#options.routineRoutes.has(route),
    };
    response.once("close", () => {
      // 499: the client disconnected before the response.
      this.#observe(scope, method, response.headersSent ? response.statusCode : 499);
    });
    return started;
  }
}

// Programs get a problem document for unknown paths, browsers a page.
function isMissingPage({ method, headers }: IncomingMessage, path: string): boolean {
  return (
    (method === "GET" || method === "HEAD") &&
    headers.accept?.includes("text/html") === true &&
    !API_PREFIXES.some((prefix) => path.startsWith(prefix)) &&
    path !== "/ui" &&
    !PROBE_PATHS.has(path)
  );
}
