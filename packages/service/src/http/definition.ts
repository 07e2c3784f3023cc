// Declared routes.
import type { GatewayRules } from "@platform/kernel/route-rules";
import type { ServiceRequest } from "../request/request.ts";
import { isSchema, type OutputOf, type Schema } from "../schema/validate.ts";

/** Methods of routes. GET serves HEAD; OPTIONS is answered by the server unless it is declared. */
const ROUTE_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** A method of a route. */
export type RouteMethod = (typeof ROUTE_METHODS)[number];

/** A schema of a body, or a form of the unparsed body. */
export type BodyOption = Schema | "bytes" | "stream";

/** Options of a route. */
export interface RouteOptions<
  Body extends BodyOption | undefined = BodyOption | undefined,
  Query extends Schema | undefined = Schema | undefined,
> {
  /**
   * Scopes that the caller's token must have, all of them; `true` requires any valid token. Tokens are those of the
   * platform's identity (PLATFORM_JWKS_URL, …). If none is configured, only programs on this machine are admitted.
   */
  requires?: string | readonly string[] | true;
  /** Schema of the body; `bytes` passes a Buffer and `stream` a ReadableStream, whatever the Content-Type. */
  body?: Body;
  /** Schema of the query: an object of strings, or of arrays for repeated names. */
  query?: Query;
  /** Schema of the answer, for the documentation only. */
  answer?: Schema;
  /** One line for the documentation. */
  summary?: string;
  /**
   * Rules that the platform's gateway applies to requests of this route, field by field in place of those of `gateway()`.
   */
  gateway?: GatewayRules;
  /** Maximum size of a body in bytes; default: the server's. */
  bodyBytesMax?: number;
  /** Maximum time to the handler's result in ms; default: the server's. */
  timeoutMs?: number;
}

/** Type of `request.body`. */
export type BodyOf<Body> = Body extends "bytes"
  ? Buffer
  : Body extends "stream"
    ? ReadableStream<Uint8Array>
    : Body extends Schema
      ? OutputOf<Body>
      : unknown;

/** Type of `request.query`. */
export type QueryOf<Query> = Query extends Schema ? OutputOf<Query> : URLSearchParams;

/** A handler. Its result is the answer; see the README for its types. */
export type Handler<Path extends string = string, Body = unknown, Query = URLSearchParams> = (
  request: ServiceRequest<Path, Body, Query>,
) => unknown;

/** A declared route. Handlers receive what their options promise, so the types of requests are erased here. */
export interface RouteDefinition {
  readonly method: RouteMethod;
  readonly path: string;
  readonly options: RouteOptions;
  readonly handler: (request: never) => unknown;
  /** `file:line:column`; "" if unknown. */
  readonly declaredAt: string;
}

/** Paths of the server itself. */
const OWN_PATHS = /^\/(?:healthz|readyz|metrics|api\/docs(?:\/.*)?)$/;

/** Checks a declaration. Throws a TypeError that says what was expected. */
export function checkRoute({ method, path, options, handler }: RouteDefinition): void {
  const fail = (reason: string): never => {
    throw new TypeError(`route ${method} ${path}: ${reason}`);
  };
  if (!ROUTE_METHODS.includes(method)) fail(`expected one of ${ROUTE_METHODS.join(", ")}`);
  if (typeof handler !== "function") fail("the handler must be a function");
  if (OWN_PATHS.test(path)) fail("this path belongs to the server");
  const { body, query, requires } = options;
  if (body !== undefined && (method === "GET" || method === "OPTIONS")) {
    fail(`a ${method} request has no body`);
  }
  if (body !== undefined && body !== "bytes" && body !== "stream" && !isSchema(body)) {
    fail('body must be a Standard Schema, "bytes" or "stream"');
  }
  if (query !== undefined && !isSchema(query)) fail("query must be a Standard Schema");
  if (requires !== undefined && !isRequirement(requires)) {
    fail("requires must be a scope such as notes:read, a list of scopes, or true");
  }
}

function isRequirement(requires: unknown): boolean {
  const isScope = (one: unknown): boolean =>
    typeof one === "string" && /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/.test(one);
  return (
    requires === true || (Array.isArray(requires) ? requires.every(isScope) : isScope(requires))
  );
}
