// Parts common to all requests: trace, access, body size, problems, metrics and log.
import type { Socket } from "node:net";
import { getProblemHeaders, toPlatformError, toProblem } from "../errors/index.ts";
import type { Caller } from "../identity/caller.ts";
import type { Logger } from "../log/index.ts";
import { createHttpMetrics, OWN_REQUEST_HEADER } from "../metrics/index.ts";
import { parseTraceContext, type Span } from "../trace/index.ts";
import type { BodyReservation } from "./body-budget.ts";
import type { ApiOptions, Guard } from "./api-options.ts";
import { checkLoopback } from "./loopback.ts";
import { isProbePath, mapLegacyPath } from "./path.ts";
import type { ApiRoute, GuardedRequest, HeaderReader, LocalAccess, Peer } from "./route.ts";

const BEARER = "Bearer ";

/** A request in flight. */
export interface Scope {
  /** The path; legacy forms are mapped. */
  readonly path: string;
  /** The requested path. */
  readonly requestedPath: string;
  readonly peer: Peer;
  readonly span: Span;
  readonly logger: Logger;
  readonly startedMs: number;
  /** Path pattern of the operation, once it is known. */
  route: string;
  /** Error of the operation. */
  error: unknown;
  /** True for requests that programs repeat every second: successful ones are logged at level debug. */
  isRoutine?: boolean;
  /** True for requests of the platform itself: figures of users' requests do not contain them. */
  readonly isOwn: boolean;
}

/** Paths of the web console's own page and session. */
const CONSOLE_PATH = /^\/(?:ui|console)(?:\/|$)/;

const BODY_BYTES_MAX = 1_048_576;

/** Default headers of all responses. */
export const SECURITY_HEADERS: readonly (readonly [string, string])[] = [
  ["x-content-type-options", "nosniff"],
  ["x-frame-options", "DENY"],
  ["referrer-policy", "no-referrer"],
  ["cross-origin-resource-policy", "same-origin"],
  ["content-security-policy", "default-src 'none'; frame-ancestors 'none'"],
  ["cache-control", "no-store"],
];

/** Starts a request: its span, logger and time measurement. */
export function startScope(
  options: Pick<ApiOptions, "tracer" | "logger" | "clock">,
  method: string,
  requestedPath: string,
  headers: HeaderReader,
  socket: Socket | undefined,
): Scope {
  const span = options.tracer.startSpan({
    name: method,
    kind: "server",
    parent: parseTraceContext(headers.get("traceparent"), headers.get("tracestate")),
    attributes: { "http.request.method": method, "url.path": requestedPath, "url.scheme": "http" },
  });
  const { traceId, spanId } = span.context;
  const path = mapLegacyPath(requestedPath);
  return {
    path,
    requestedPath,
    peer: readPeer(socket),
    span,
    logger: options.logger.child({ trace_id: traceId, span_id: spanId }),
    startedMs: options.clock.monotonicMs(),
    route: "unmatched",
    error: undefined,
    isOwn: isProbePath(path) || CONSOLE_PATH.test(path) || headers.has(OWN_REQUEST_HEADER),
  };
}

function readPeer(socket: Socket | undefined): Peer {
  if (socket === undefined) return { kind: "unknown" };
  if (socket.remoteAddress !== undefined) return { kind: "tcp", address: socket.remoteAddress };
  // A closed TCP socket has no address either, but its server still has a port.
  const server = (socket as { server?: { address(): unknown } }).server;
  return typeof server?.address() === "string" ? { kind: "unix" } : { kind: "unknown" };
}

/** Returns the caller; throws if the operation does not allow it. */
export async function admitCaller(
  guard: Guard,
  { access = "guarded" }: ApiRoute,
  request: GuardedRequest,
): Promise<Caller> {
  if (access === "public") return { kind: "anonymous" };
  if (typeof access === "object" && passesWithoutGuard(access, request))
    return { kind: "anonymous" };
  const check = typeof access === "object" ? access.otherwise : access;
  const caller = await guard(request);
  if (typeof check === "function") check(caller);
  return caller;
}

function passesWithoutGuard({ token }: LocalAccess, { peer, headers }: GuardedRequest): boolean {
  if (checkLoopback({ peer, getHeader: (name) => headers.get(name) }).allowed) return true;
  const given = headers.get("authorization") ?? "";
  if (token === undefined || !given.startsWith(BEARER)) return false;
  return token.accepts(given.slice(BEARER.length));
}

/** Starts to count the body of a request, if the API has a budget. */
export function reserveBody(
  { bodyBudget }: ApiOptions,
  caller: Caller,
  peer: Peer,
): BodyReservation | undefined {
  const address = peer.kind === "tcp" ? peer.address : peer.kind;
  const client = caller.kind === "user" ? `user ${caller.claims.sub ?? ""}` : `peer ${address}`;
  return bodyBudget?.open(client);
}

/** Returns the maximum size of a request body in bytes. */
export function getBodyBound(options: ApiOptions, route: ApiRoute): number {
  return route.bodyBytesMax ?? options.bodyBytesMax ?? BODY_BYTES_MAX;
}

/** Formats the response of a failed request. */
export function formatProblem(
  error: unknown,
  scope: Scope,
): { status: number; headers: Record<string, string>; body: string } {
  const { traceId } = scope.span.context;
  const problem = toProblem(error, { instance: scope.requestedPath, traceId });
  const headers = getProblemHeaders(error);
  return { status: problem.status, headers, body: JSON.stringify(problem) };
}

/** Ends a request: records metrics, span and log event. */
export type Observer = (scope: Scope, method: string, status: number) => void;

/** Creates the observer of an API. */
export function createObserver(
  options: Pick<ApiOptions, "metrics" | "httpMetrics" | "clock">,
): Observer {
  const httpMetrics = options.httpMetrics ?? createHttpMetrics(options.metrics);
  return (scope, method, status) => {
    const durationMs = options.clock.monotonicMs() - scope.startedMs;
    httpMetrics.observe(scope.route, method, status, durationMs);
    if (!scope.isOwn && scope.isRoutine !== true) httpMetrics.observeUser(status, durationMs);
    scope.span.setName(`${method} ${scope.route}`);
    scope.span.setAttribute("http.route", scope.route);
    scope.span.setAttribute("http.response.status_code", status);
    if (status >= 500) scope.span.setStatus("error", toErrorText(scope.error));
    scope.span.end();
    logRequest(scope, method, status, durationMs);
  };
}

function logRequest(scope: Scope, method: string, status: number, durationMs: number): void {
  const fields = {
    method,
    path: scope.requestedPath,
    route: scope.route,
    status,
    duration_ms: durationMs,
  };
  if (status >= 500 && scope.error !== undefined) {
    scope.logger.error("request failed", { ...fields, error: scope.error });
  } else if (isProbePath(scope.path) || (scope.isRoutine === true && status < 400)) {
    scope.logger.debug("request", fields);
  } else {
    scope.logger.info("request", fields);
  }
}

function toErrorText(error: unknown): string {
  return error === undefined ? "" : toPlatformError(error).code;
}
