// The front handler: requests of the OAuth core and of the pages go there on node's own objects, the rest to the API.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Api } from "@platform/kernel/http";
import type { Logger } from "@platform/kernel/log";
import type { HttpMetrics } from "@platform/kernel/metrics";
import type { Clock } from "@platform/kernel/time";
import { parseTraceContext, type Tracer } from "@platform/kernel/trace";

/** A handler of requests on node's own objects. */
export interface NodeHandler {
  /** The route pattern of a path that `handle` answers; undefined for other paths. */
  findRoute(path: string): string | undefined;
  /** Answers the request; returns false if its path has no route. */
  handle(request: IncomingMessage, response: ServerResponse): boolean;
}

/** What is behind the front once the service is composed. */
export interface Faces {
  api: Api;
  oauth: NodeHandler;
  pages: NodeHandler & {
    /** Answers a browser that asks for a page that does not exist. */
    showMissing(request: IncomingMessage, response: ServerResponse): void;
  };
}

// What of the API is not below /api/.
const probePaths = new Set(["/healthz", "/readyz", "/metrics"]);
// A year, for this host alone: nothing is known of its neighbours.
const transportSecurity = "max-age=31536000";

/** What their requests are measured, traced and logged with, as the API does its own. */
export interface FrontParts {
  httpMetrics: HttpMetrics;
  tracer: Tracer;
  log: Logger;
  clock: Clock;
  /** Whether browsers reach the service over https, and shall not come without it again. */
  isSecure: boolean;
}

/**
 * Answers 503 until `open` is called: the port, which the issuer may depend on, is known only when the service already
 * listens.
 */
export class Front {
  readonly #parts: FrontParts;
  #faces: Faces | undefined;

  constructor(parts: FrontParts) {
    this.#parts = parts;
  }

  open(faces: Faces): void {
    this.#faces = faces;
  }

  /** For `listenHttp`. */
  readonly intercept = (request: IncomingMessage, response: ServerResponse): boolean => {
    if (this.#faces === undefined) {
      response.writeHead(503, { "Retry-After": "1", "Content-Length": "0" }).end();
      return true;
    }
    if (this.#parts.isSecure) response.setHeader("Strict-Transport-Security", transportSecurity);
    const path = (request.url ?? "/").split("?", 1)[0]!;
    for (const face of [this.#faces.oauth, this.#faces.pages]) {
      const route = face.findRoute(path);
      if (route === undefined) continue;
      this.#observe(request, response, path, route);
      return face.handle(request, response);
    }
    if (!isMissingPage(request, path)) return false;
    this.#observe(request, response, path, "unmatched");
    this.#faces.pages.showMissing(request, response);
    return true;
  };

  /** For `listenHttp`. */
  readonly fetch: Api["fetch"] = (request, bindings) => this.#faces!.api.fetch(request, bindings);

  #observe(request: IncomingMessage, response: ServerResponse, path: string, route: string): void {
    const { httpMetrics, tracer, log, clock } = this.#parts;
    const { method = "GET", headers } = request;
    const startedMs = clock.monotonicMs();
    const { traceparent, tracestate } = headers;
    const span = tracer.startSpan({
      name: `${method} ${route}`,
      kind: "server",
      parent: parseTraceContext(
        typeof traceparent === "string" ? traceparent : null,
        typeof tracestate === "string" ? tracestate : null,
      ),
      attributes: { "http.request.method": method, "http.route": route, "url.path": path },
    });
    response.once("close", () => {
      // 499: the client went away before it had an answer.
      const status = response.headersSent ? response.statusCode : 499;
      const durationMs = clock.monotonicMs() - startedMs;
      httpMetrics.observe(route, method, status, durationMs);
      span.setAttribute("http.response.status_code", status);
      if (status >= 500) span.setStatus("error", "internal");
      span.end();
      if (!log.isOn("info")) return;
      const { traceId, spanId } = span.context;
      const fields = { trace_id: traceId, span_id: spanId, method, path: route, route, status };
      log.info("request", { ...fields, duration_ms: durationMs });
    });
  }
}

// Programs get a problem document for paths that do not exist, people in browsers a page.
function isMissingPage({ method, headers }: IncomingMessage, path: string): boolean {
  return (
    (method === "GET" || method === "HEAD") &&
    headers.accept?.includes("text/html") === true &&
    !path.startsWith("/api/") &&
    !probePaths.has(path)
  );
}
