// The API of one service: its operations behind one guard, with probes, metrics, traces, logs, problems and documentation.
import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { getProblemHeaders, PlatformError, toPlatformError, toProblem } from "../errors/index.ts";
import type { HealthAnswer, HealthRegistry } from "../health/index.ts";
import type { Caller } from "../identity/caller.ts";
import type { Logger } from "../log/index.ts";
import {
  createHttpMetrics,
  METRICS_CONTENT_TYPE,
  type HttpMetrics,
  type MetricRegistry,
} from "../metrics/index.ts";
import type { Clock } from "../time/index.ts";
import { parseTraceContext, type Span, type Tracer } from "../trace/index.ts";
import { createDocsPage } from "./docs/page.ts";
import { buildOpenApi, type JsonObject } from "./openapi.ts";
import { readInput } from "./request-input.ts";
import { compareSpecificity, mapLegacyPath, toDocumentedPath, toRouterPath } from "./path.ts";
import {
  defineRoute,
  type Access,
  type ApiRoute,
  type GuardedRequest,
  type Peer,
} from "./route.ts";

/** Says who calls, or throws the PlatformError (401, 403) that keeps them out. */
export type Guard = (request: GuardedRequest) => Caller | Promise<Caller>;

/** What an API is made of. */
export interface ApiOptions {
  service: string;
  version: string;
  /** Title of the documentation; default the service's name. */
  title?: string;
  description?: string;
  routes: readonly ApiRoute[];
  guard: Guard;
  health: HealthRegistry;
  metrics: MetricRegistry;
  /** The request metrics made from `metrics`, where something beside this API counts in them too. */
  httpMetrics?: HttpMetrics;
  logger: Logger;
  tracer: Tracer;
  clock: Clock;
  /** Bound of a request's body where the route has none of its own. Default 1 MiB. */
  bodyBytesMax?: number;
  /** Who may read `/metrics`. Default `guarded`. */
  metricsAccess?: Access;
  /** Who may read `/api/docs`. Default `guarded`. */
  docsAccess?: Access;
  /** Adds to the OpenAPI document at each request, for operations that come and go. */
  extendOpenApi?: (document: JsonObject) => JsonObject;
}

/** A ready API: `fetch` answers requests (a listener passes its bindings), `openApi` is its document. */
export interface Api {
  readonly fetch: (request: Request, bindings?: Partial<HttpBindings>) => Promise<Response>;
  readonly openApi: () => JsonObject;
}

interface Scope {
  readonly path: string;
  readonly askedPath: string;
  readonly url: URL;
  readonly peer: Peer;
  readonly outgoing: HttpBindings["outgoing"] | undefined;
  readonly span: Span;
  readonly logger: Logger;
  readonly startedMs: number;
  /** Methods of the paths that matched without the method matching. */
  readonly allowed: Set<string>;
  route: string;
  error: unknown;
}

type Env = { Bindings: { scope: Scope } };

const BODY_BYTES_MAX = 1_048_576;
const PROBES: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);
const SECURITY_HEADERS: readonly (readonly [string, string])[] = [
  ["x-content-type-options", "nosniff"],
  ["x-frame-options", "DENY"],
  ["referrer-policy", "no-referrer"],
  ["cross-origin-resource-policy", "same-origin"],
  ["content-security-policy", "default-src 'none'; frame-ancestors 'none'"],
  ["cache-control", "no-store"],
];

/**
 * Puts an API together. Beside `routes` it has `/healthz`, `/readyz`, `/metrics`, `/api/docs` and
 * `/api/docs/openapi.json`. `/api/…` without a version means `/api/v1/…`. Errors are problem documents. The time in log
 * and metrics ends when the answer's head is ready; a streamed body takes longer.
 */
export function createApi(options: ApiOptions): Api {
  const openApi = createOpenApi(options);
  const routes = [...createOwnRoutes(options, openApi), ...options.routes];
  const app = new Hono<Env>({
    getPath: (_request, context) => readScope(context?.env).path,
  });
  for (const [pattern, group] of groupRoutes(routes)) {
    app.all(toRouterPath(pattern), async (context, next) => {
      const { scope } = context.env;
      const { method } = context.req;
      const route = group.get(method === "HEAD" ? "GET" : method);
      if (scope.route === "unmatched" || route !== undefined) scope.route = pattern;
      if (route !== undefined) {
        return runRoute(options, route, scope, context.req.raw, context.req.param());
      }
      for (const name of group.keys()) scope.allowed.add(name);
      await next();
      return undefined;
    });
  }
  app.notFound((context) => answerUnmatched(context.env.scope, context.req.method));
  app.onError((error, context) => {
    context.env.scope.error = error;
    return createProblemResponse(error, context.env.scope);
  });
  const observe = createObserver(options);
  return {
    openApi,
    fetch: async (request, bindings = {}) => {
      const scope = startScope(options, request, bindings);
      const response = await app.fetch(request, { scope });
      return observe(scope, request, response);
    },
  };
}

function readScope(env: unknown): Scope {
  return (env as Env["Bindings"]).scope;
}

function startScope(options: ApiOptions, request: Request, bindings: Partial<HttpBindings>): Scope {
  const url = new URL(request.url);
  const { headers, method } = request;
  const path = mapLegacyPath(url.pathname);
  const span = options.tracer.startSpan({
    name: method,
    kind: "server",
    parent: parseTraceContext(headers.get("traceparent"), headers.get("tracestate")),
    attributes: { "http.request.method": method, "url.path": url.pathname, "url.scheme": "http" },
  });
  const { traceId, spanId } = span.context;
  return {
    path,
    askedPath: url.pathname,
    url,
    peer: readPeer(bindings),
    outgoing: bindings.outgoing,
    span,
    logger: options.logger.child({ trace_id: traceId, span_id: spanId }),
    startedMs: options.clock.monotonicMs(),
    allowed: new Set(),
    route: "unmatched",
    error: undefined,
  };
}

function readPeer(bindings: Partial<HttpBindings>): Peer {
  const socket = bindings.incoming?.socket;
  if (socket === undefined) return { kind: "unknown" };
  if (socket.remoteAddress !== undefined) return { kind: "tcp", address: socket.remoteAddress };
  // A TCP socket that has closed has lost its address as well, but its server still has a port.
  const server = (socket as { server?: { address(): unknown } }).server;
  return typeof server?.address() === "string" ? { kind: "unix" } : { kind: "unknown" };
}

async function runRoute(
  options: ApiOptions,
  route: ApiRoute,
  scope: Scope,
  request: Request,
  params: Readonly<Record<string, string>>,
): Promise<Response> {
  const { peer, path, span, logger } = scope;
  const guarded: GuardedRequest = { headers: request.headers, method: request.method, path, peer };
  const access = route.access ?? "guarded";
  let caller: Caller = { kind: "anonymous" };
  if (access !== "public") caller = await options.guard(guarded);
  if (typeof access === "function") access(caller);
  const bytesMax = route.bodyBytesMax ?? options.bodyBytesMax ?? BODY_BYTES_MAX;
  const input = await readInput(route, request, scope.url, params, bytesMax);
  const answerHeaders = new Headers();
  const result = await route.handle({
    ...guarded,
    params: input.params as never,
    query: input.query as never,
    body: input.body as never,
    caller,
    signal: request.signal,
    span,
    logger,
    answerHeaders,
    request,
    rawResponse: scope.outgoing,
  });
  return createResponse(result, route.status, answerHeaders);
}

function createResponse(result: unknown, status: number | undefined, headers: Headers): Response {
  if (result instanceof Response) return result;
  if (result === undefined) return new Response(null, { status: status ?? 204, headers });
  const isBytes = result instanceof Uint8Array;
  if (!headers.has("content-type")) {
    headers.set(
      "content-type",
      isBytes
        ? "application/octet-stream"
        : typeof result === "string"
          ? "text/plain; charset=utf-8"
          : "application/json",
    );
  }
  const body =
    isBytes || typeof result === "string"
      ? (result as string | Uint8Array<ArrayBuffer>)
      : JSON.stringify(result);
  return new Response(body, { status: status ?? 200, headers });
}

function answerUnmatched(scope: Scope, method: string): Response {
  if (scope.allowed.size === 0) {
    return createProblemResponse(new PlatformError("not_found", "There is nothing here."), scope);
  }
  if (scope.allowed.has("GET")) scope.allowed.add("HEAD");
  const allow = [...scope.allowed, "OPTIONS"].join(", ");
  if (method === "OPTIONS") return new Response(null, { status: 204, headers: { Allow: allow } });
  const detail = `This path takes ${allow}.`;
  const error = new PlatformError("method_not_allowed", detail, { headers: { Allow: allow } });
  return createProblemResponse(error, scope);
}

function createProblemResponse(error: unknown, scope: Scope): Response {
  const problem = toProblem(error, {
    instance: scope.askedPath,
    traceId: scope.span.context.traceId,
  });
  const headers = getProblemHeaders(error);
  return new Response(JSON.stringify(problem), { status: problem.status, headers });
}

function createObserver(
  options: ApiOptions,
): (scope: Scope, request: Request, response: Response) => Response {
  const httpMetrics = options.httpMetrics ?? createHttpMetrics(options.metrics);
  return (scope, request, response) => {
    const { status } = response;
    const { method } = request;
    const durationMs = options.clock.monotonicMs() - scope.startedMs;
    httpMetrics.observe(scope.route, method, status, durationMs);
    scope.span.setName(`${method} ${scope.route}`);
    scope.span.setAttribute("http.route", scope.route);
    scope.span.setAttribute("http.response.status_code", status);
    if (status >= 500) scope.span.setStatus("error", toErrorText(scope.error));
    scope.span.end();
    logRequest(scope, method, status, durationMs);
    // A response that came from elsewhere may have headers that cannot be changed.
    const headers = new Headers(response.headers);
    for (const [name, value] of SECURITY_HEADERS) if (!headers.has(name)) headers.set(name, value);
    return new Response(response.body, { status, headers });
  };
}

function logRequest(scope: Scope, method: string, status: number, durationMs: number): void {
  const fields = {
    method,
    path: scope.askedPath,
    route: scope.route,
    status,
    duration_ms: durationMs,
  };
  if (status >= 500 && scope.error !== undefined) {
    scope.logger.error("request failed", { ...fields, error: scope.error });
  } else if (PROBES.has(scope.path)) {
    scope.logger.debug("request", fields);
  } else {
    scope.logger.info("request", fields);
  }
}

function toErrorText(error: unknown): string {
  return error === undefined ? "" : toPlatformError(error).code;
}

function createOpenApi(options: ApiOptions): () => JsonObject {
  let document: JsonObject | undefined;
  return () => {
    document ??= buildOpenApi(
      {
        title: options.title ?? options.service,
        version: options.version,
        ...(options.description === undefined ? {} : { description: options.description }),
      },
      [...createOwnRoutes(options, () => ({})), ...options.routes].map((route) => ({
        ...route,
        path: toDocumentedPath(route.path),
      })),
    );
    return options.extendOpenApi?.(document) ?? document;
  };
}

function createOwnRoutes(options: ApiOptions, openApi: () => JsonObject): ApiRoute[] {
  const { health, metrics } = options;
  const docsAccess = options.docsAccess ?? "guarded";
  const page = createDocsPage(options.title ?? options.service);
  const probe = (answer: HealthAnswer): Response =>
    Response.json(answer.body, { status: answer.status });
  const own = { method: "GET", tag: "Operation", answerType: "application/json" } as const;
  return [
    defineRoute({
      ...own,
      path: "/healthz",
      summary: "Liveness: the process answers",
      access: "public",
      handle: () => probe(health.live()),
    }),
    defineRoute({
      ...own,
      path: "/readyz",
      summary: "Readiness: the service takes work",
      access: "public",
      problems: { 503: "Starting, draining, or missing a dependency (the body is as of 200)" },
      handle: async () => probe(await health.ready()),
    }),
    defineRoute({
      ...own,
      path: "/metrics",
      summary: "Metrics in Prometheus' text format",
      answerType: "text/plain",
      access: options.metricsAccess ?? "guarded",
      handle: async () =>
        new Response(await metrics.render(), { headers: { "Content-Type": METRICS_CONTENT_TYPE } }),
    }),
    defineRoute({
      ...own,
      path: "/api/docs",
      summary: "This API for people",
      answerType: "text/html",
      access: docsAccess,
      handle: () => new Response(page.html, { headers: page.headers }),
    }),
    defineRoute({
      ...own,
      path: "/api/docs/openapi.json",
      summary: "This API for programs",
      access: docsAccess,
      handle: () => openApi(),
    }),
  ];
}

function groupRoutes(routes: readonly ApiRoute[]): [string, Map<string, ApiRoute>][] {
  const groups = new Map<string, Map<string, ApiRoute>>();
  for (const route of routes) {
    const group = groups.get(route.path) ?? new Map<string, ApiRoute>();
    if (group.has(route.method)) {
      throw new TypeError(`${route.method} ${route.path} is defined twice`);
    }
    group.set(route.method, route);
    groups.set(route.path, group);
  }
  return [...groups].sort(([a], [b]) => compareSpecificity(a, b));
}
