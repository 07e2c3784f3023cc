// The API of a service: its operations, probes, metrics, documentation; with authentication, traces, logs and problem
// documents.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { PlatformError } from "../errors/index.ts";
import { healthBody, type HealthAnswer } from "../health/index.ts";
import { needScope } from "../identity/caller.ts";
import { METRICS_CONTENT_TYPE } from "../metrics/index.ts";
import { toLiveSecret } from "../secrets/index.ts";
import type { ApiOptions } from "./api-options.ts";
import { runInTrace } from "../trace/index.ts";
import { createDirectDispatcher } from "./direct.ts";
import { createDocsPage, type DocsPage } from "./docs/page.ts";
import { bytes, BytesAnswer, formatJson, StatusAnswer, toStatusAnswer } from "./answer.ts";
import { buildOpenApi, openApiAnswer, type JsonObject } from "./openapi.ts";
import { readInput } from "./request-input.ts";
import { compareSpecificity, toDocumentedPath, toRouterPath } from "./path.ts";
import { defineRoute, type ApiRoute } from "./route.ts";
import {
  admitCaller,
  createObserver,
  formatProblem,
  getBodyBound,
  reserveBody,
  SECURITY_HEADERS,
  startScope,
  type Scope,
} from "./scope.ts";

/** An API: `fetch` handles requests (listeners pass their bindings), `openApi` returns its document. */
export interface Api {
  readonly fetch: (request: Request, bindings?: Partial<HttpBindings>) => Promise<Response>;
  readonly openApi: () => JsonObject;
  /**
   * Handles direct operations with node's request and response (see `defineDirectRoute`). False if `fetch` must handle
   * the request.
   */
  readonly intercept: (request: IncomingMessage, response: ServerResponse) => boolean;
}

interface RoutedScope extends Scope {
  readonly url: URL;
  readonly outgoing: HttpBindings["outgoing"] | undefined;
  /** Methods of routes that match the path but not the method. */
  readonly allowed: Set<string>;
}

const METRICS_ACCESS = needScope("metrics:read");
const DOCS_ACCESS = { local: true, otherwise: "guarded" } as const;
/** The documentation describes the page, and does not contain it. */
const NO_PAGE = { html: "", headers: {} };

interface Env {
  Bindings: { scope: RoutedScope };
}

/**
 * Creates an API. In addition to `routes` it has `/healthz`, `/readyz`, `/metrics`, `/api/docs` and
 * `/api/docs/openapi.json`. `/api/…` without a version means `/api/v1/…`. Errors are problem documents. The duration in
 * logs and metrics ends with the response head; streamed bodies take longer.
 */
export function createApi(options: ApiOptions): Api {
  const openApi = createOpenApi(options);
  const page = createDocsPage(options.title ?? options.service);
  const own = [...createOwnRoutes(options, openApi, page), ...createFontRoutes(options, page)];
  const routes = [...own, ...options.routes];
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
        scope.isRoutine = route.isRoutine === true;
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
      const { method, headers } = request;
      const url = new URL(request.url);
      const scope: RoutedScope = {
        ...startScope(options, method, url.pathname, headers, bindings.incoming?.socket),
        url,
        outgoing: bindings.outgoing,
        allowed: new Set(),
      };
      const { context } = scope.span;
      const response = await runInTrace(context, () => app.fetch(request, { scope }));
      observe(scope, method, response.status);
      return secure(response);
    },
    intercept: createDirectDispatcher(options, observe),
  };
}

// The headers of a response from `fetch` are immutable, hence the copy.
function secure(response: Response): Response {
  const headers = new Headers(response.headers);
  for (const [name, value] of SECURITY_HEADERS) if (!headers.has(name)) headers.set(name, value);
  return new Response(response.body, { status: response.status, headers });
}

function readScope(env: unknown): RoutedScope {
  return (env as Env["Bindings"]).scope;
}

async function runRoute(
  options: ApiOptions,
  route: ApiRoute,
  scope: RoutedScope,
  request: Request,
  params: Readonly<Record<string, string>>,
): Promise<Response> {
  const { peer, path, span, logger } = scope;
  const { search } = scope.url;
  const guarded = { headers: request.headers, method: request.method, path, search, peer };
  const caller = await admitCaller(options.guard, route, guarded);
  await route.authorize?.({ ...guarded, caller, params });
  const bytesMax = getBodyBound(options, route);
  const reservation = reserveBody(options, caller, peer);
  try {
    const input = await readInput(route, request, scope.url, params, bytesMax, reservation);
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
    return createResponse(route, result, answerHeaders);
  } finally {
    reservation?.release();
  }
}

function createResponse(route: ApiRoute, result: unknown, headers: Headers): Response {
  if (result instanceof Response) return result;
  const { status, body: value } = toStatusAnswer(route, result);
  if (value === undefined) return new Response(null, { status, headers });
  const { type, body } = formatBody(route, value);
  if (!headers.has("content-type")) headers.set("content-type", type);
  return new Response(body, { status, headers });
}

function formatBody(
  route: ApiRoute,
  value: unknown,
): { type: string; body: string | Uint8Array<ArrayBuffer> } {
  if (route.answer instanceof BytesAnswer) {
    const { mediaType } = route.answer;
    if (typeof value === "string") return { type: `${mediaType}; charset=utf-8`, body: value };
    if (value instanceof Uint8Array) {
      return { type: mediaType, body: value as Uint8Array<ArrayBuffer> };
    }
  }
  return { type: "application/json", body: formatJson(route, value) };
}

function answerUnmatched(scope: RoutedScope, method: string): Response {
  if (scope.allowed.size === 0) {
    return createProblemResponse(new PlatformError("not_found", "Not found."), scope);
  }
  if (scope.allowed.has("GET")) scope.allowed.add("HEAD");
  const allow = [...scope.allowed, "OPTIONS"].join(", ");
  if (method === "OPTIONS") return new Response(null, { status: 204, headers: { Allow: allow } });
  const detail = `Allowed methods: ${allow}.`;
  const error = new PlatformError("method_not_allowed", detail, { headers: { Allow: allow } });
  return createProblemResponse(error, scope);
}

function createProblemResponse(error: unknown, scope: Scope): Response {
  const { status, headers, body } = formatProblem(error, scope);
  return new Response(body, { status, headers });
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
      [...createOwnRoutes(options, () => ({}), NO_PAGE), ...options.routes].map((route) => ({
        ...route,
        path: toDocumentedPath(route.path),
      })),
    );
    return options.extendOpenApi?.(document) ?? document;
  };
}

function createOwnRoutes(
  options: ApiOptions,
  openApi: () => JsonObject,
  page: Pick<DocsPage, "html" | "headers">,
): ApiRoute[] {
  const { health, metrics, docsAccess = DOCS_ACCESS } = options;
  const { metricsAccess = METRICS_ACCESS, metricsToken } = options;
  const token = metricsToken === undefined ? undefined : toLiveSecret(metricsToken);
  const probe = ({ status, body }: HealthAnswer) => new StatusAnswer(status, body);
  const own = { method: "GET", tag: "Operation" } as const;
  return [
    defineRoute({
      ...own,
      path: "/healthz",
      summary: "Liveness: the process responds",
      access: "public",
      answer: healthBody,
      handle: () => probe(health.live()),
    }),
    defineRoute({
      ...own,
      path: "/readyz",
      summary: "Readiness: the service accepts requests",
      access: "public",
      description: "503 while starting or draining, or if a dependency is unavailable.",
      status: [200, 503],
      answer: healthBody,
      handle: async () => probe(await health.ready()),
    }),
    defineRoute({
      ...own,
      path: "/metrics",
      summary: "Metrics in Prometheus text format",
      answer: bytes("text/plain"),
      access: { local: true, token, otherwise: metricsAccess },
      handle: async () =>
        new Response(await metrics.render(), { headers: { "Content-Type": METRICS_CONTENT_TYPE } }),
    }),
    defineRoute({
      ...own,
      path: "/api/docs",
      summary: "API documentation (HTML)",
      answer: bytes("text/html"),
      access: docsAccess,
      requires: docsAccess === "public" ? "public" : "caller",
      handle: () => new Response(page.html, { headers: page.headers }),
    }),
    defineRoute({
      ...own,
      path: "/api/docs/openapi.json",
      summary: "API documentation (OpenAPI)",
      access: docsAccess,
      requires: docsAccess === "public" ? "public" : "caller",
      answer: openApiAnswer,
      handle: () => openApi(),
    }),
  ];
}

// Parts of a page, and no operations: they are not in the documentation.
function createFontRoutes({ docsAccess = DOCS_ACCESS }: ApiOptions, page: DocsPage): ApiRoute[] {
  return [...page.fonts].map(([path, { body, headers }]) =>
    defineRoute({
      method: "GET",
      path,
      summary: "A font of the documentation",
      isRoutine: true,
      access: docsAccess,
      answer: bytes("font/woff2"),
      handle: () => new Response(body, { headers }),
    }),
  );
}

function groupRoutes(routes: readonly ApiRoute[]): [string, Map<string, ApiRoute>][] {
  const groups = new Map<string, Map<string, ApiRoute>>();
  for (const route of routes) {
    checkPath(route);
    const group = groups.get(route.path) ?? new Map<string, ApiRoute>();
    if (group.has(route.method)) {
      throw new TypeError(`duplicate route: ${route.method} ${route.path}`);
    }
    group.set(route.method, route);
    groups.set(route.path, group);
  }
  return [...groups].sort(([a], [b]) => compareSpecificity(a, b));
}

// The router would accept its own notation as well, which the document does not show as a parameter.
function checkPath({ method, path }: ApiRoute): void {
  if (!path.split("/").some((segment) => segment.startsWith(":"))) return;
  throw new TypeError(`${method} ${path}: write parameters as {name}`);
}
