// Definition of an operation: its path, schemas, responses and handler.
import type { ServerResponse } from "node:http";
import type { z } from "zod";
import type { AnswerOf, Success } from "./answer.ts";
import type { Caller } from "../identity/caller.ts";
import type { Logger } from "../log/index.ts";
import type { LiveSecret } from "../secrets/index.ts";
import type { Span } from "../trace/index.ts";

/** Methods of operations. HEAD is derived from GET, OPTIONS from the methods of the path. */
export type ApiMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Form of the request body: JSON validated by `body`, bytes, or a stream that the handler reads from `request`. */
export type BodyKind = "json" | "bytes" | "stream";

/**
 * Access to an operation: public, all callers that the guard accepts, or those that also pass a check, which throws
 * otherwise. `local` is open to programs on this machine (`checkLoopback`) and to holders of `token`; others need the
 * guard and the check.
 */
export type Access = "public" | "guarded" | ((caller: Caller) => void) | LocalAccess;

/**
 * Rights that an operation requires: scopes, of which one is sufficient; `caller`: credentials; `public`: none; `token`: a
 * credential of its own, which no caller has.
 */
type Requirement = readonly string[] | "caller" | "public" | "token";

/** Access without the guard for programs on this machine. */
export interface LocalAccess {
  readonly local: true;
  /** Bearer token that is sufficient as well. */
  readonly token?: LiveSecret | undefined;
  readonly otherwise: "guarded" | ((caller: Caller) => void);
}

/** The peer at the other end of the socket. */
export type Peer = { kind: "tcp"; address: string } | { kind: "unix" } | { kind: "unknown" };

/** Reads headers by case-insensitive name; repeated headers are joined by ", ". */
export type HeaderReader = Pick<Headers, "get" | "has">;

/** A request as passed to guards, before its body is read. */
export interface GuardedRequest {
  readonly headers: HeaderReader;
  readonly method: string;
  /** The path without the query; legacy forms are mapped. */
  readonly path: string;
  /** The query with its `?`; absent or "" without one. */
  readonly search?: string;
  readonly peer: Peer;
}

/** A request as passed to its handler. */
export interface Exchange<Params, Query, Body> extends GuardedRequest {
  readonly headers: Headers;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly caller: Caller;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
  /** The server span; its context is propagated to the next hop. */
  readonly span: Span;
  /** Adds the request's trace ids to log events. */
  readonly logger: Logger;
  /** Response headers, for handlers that return a plain value. */
  readonly answerHeaders: Headers;
  /** The underlying request. */
  readonly request: Request;
  /**
   * Node's response, for long streams: the handler writes it, including the head, and returns `alreadyAnswered()`.
   * Undefined if the API is called without a listener.
   */
  readonly rawResponse: ServerResponse | undefined;
}

/** A request as passed to the handler of a direct operation. */
export type DirectExchange<Body> = GuardedRequest &
  Pick<Exchange<unknown, unknown, Body>, "body" | "caller" | "span" | "logger">;

/** A request as passed to `authorize`: its parameters are decoded and not yet validated. */
export interface AuthorizedRequest extends GuardedRequest {
  readonly caller: Caller;
  readonly params: Readonly<Record<string, string>>;
}

/** An operation of an API. `path` is absolute, with parameters in braces: `/api/v1/users/{id}`. */
export interface ApiRoute extends Success {
  readonly method: ApiMethod;
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  /** Group in the documentation. */
  readonly tag?: string;
  /** Default `guarded`. */
  readonly access?: Access;
  /**
   * Rights that the operation requires, for its documentation, if `access` does not declare them (`needScope`): scopes, of
   * which one is sufficient, or `caller` if every caller may do it with what is their own. Tests call every operation with
   * and without.
   */
  readonly requires?: Requirement;
  /**
   * Rights to what the path names, which `access` cannot decide. Called before query and body are read, so that callers
   * without rights learn nothing about these. Throws if the caller has none. Not called for direct operations.
   */
  readonly authorize?: (request: AuthorizedRequest) => Promise<void>;
  readonly params?: z.ZodType;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  readonly bodyKind?: BodyKind;
  /** True for requests that a program repeats every few seconds: successful ones are logged at level debug. */
  readonly isRoutine?: boolean;
  /** See `defineDirectRoute`. */
  readonly isDirect?: boolean;
  /** Maximum size of the request body; overrides the maximum of the API. */
  readonly bodyBytesMax?: number;
  /** Documented problem statuses with their meaning. */
  readonly problems?: Readonly<Record<number, string>>;
  /**
   * Handles a request, and returns what `answer` declares: the value of the schema or a `StatusAnswer`; text, bytes or a
   * `Response`, which is sent unchanged; or undefined. Errors are thrown as PlatformError.
   */
  readonly handle: (exchange: Exchange<never, never, never>) => unknown;
}

type Output<S, Otherwise> = S extends z.ZodType ? z.output<S> : Otherwise;

/** Result of handlers that write `rawResponse` themselves. `status` is the status sent, for logs and metrics. */
export function alreadyAnswered(status = 200): Response {
  return new Response(null, { status, headers: { "x-hono-already-sent": "true" } });
}

/** Defines an operation with the types of its schemas, for `createApi`. */
export function defineRoute<
  A extends Success["answer"],
  P extends z.ZodType | undefined = undefined,
  Q extends z.ZodType | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
  K extends BodyKind = "json",
>(
  route: Omit<ApiRoute, "handle" | "params" | "query" | "body" | "answer" | "bodyKind"> & {
    readonly params?: P;
    readonly query?: Q;
    readonly body?: B;
    readonly bodyKind?: K;
    readonly answer: A;
    readonly handle: (
      exchange: Exchange<
        Output<P, Readonly<Record<string, string>>>,
        Output<Q, undefined>,
        K extends "bytes" ? Uint8Array<ArrayBuffer> : Output<B, undefined>
      >,
    ) => AnswerOf<A> | Promise<AnswerOf<A>>;
  },
): ApiRoute {
  return route as ApiRoute;
}

/**
 * Defines an operation for thousands of requests per second: no path parameters, no query, a JSON body, and a
 * JSON response. A listener with the API's `intercept` handles it with node's request and response, at about a
 * third of the CPU time of other operations; the behaviour is the same.
 */
export function defineDirectRoute<B extends z.ZodType, A extends Success["answer"]>(
  route: Omit<
    ApiRoute,
    "handle" | "params" | "query" | "body" | "answer" | "bodyKind" | "isDirect"
  > & {
    readonly body: B;
    readonly answer: A;
    readonly handle: (exchange: DirectExchange<z.output<B>>) => Promise<AnswerOf<A>>;
  },
): ApiRoute {
  return { ...(route as unknown as ApiRoute), isDirect: true };
}
