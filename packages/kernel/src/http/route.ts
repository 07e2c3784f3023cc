// The definition of one operation: its path and schemas, what it answers, and the function that does it.
import type { ServerResponse } from "node:http";
import type { z } from "zod";
import type { Caller } from "../identity/caller.ts";
import type { Logger } from "../log/index.ts";
import type { Span } from "../trace/index.ts";

/** Methods that operations may have; HEAD is answered from GET, OPTIONS from the path's methods. */
export type ApiMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** How a request's body is read: as JSON checked by `body`, or as bytes. */
export type BodyKind = "json" | "bytes";

/** Who may call: anyone; whoever the API's guard lets in; or of those, whom this check lets in (it throws else). */
export type Access = "public" | "guarded" | ((caller: Caller) => void);

/** The peer at the other end of the socket. */
export type Peer = { kind: "tcp"; address: string } | { kind: "unix" } | { kind: "unknown" };

/** Reads headers by name in any case; several of one name are joined by ", ". */
export type HeaderReader = Pick<Headers, "get" | "has">;

/** What a guard sees of a request, before its body is read. */
export interface GuardedRequest {
  readonly headers: HeaderReader;
  readonly method: string;
  /** The path without query, legacy forms mapped. */
  readonly path: string;
  readonly peer: Peer;
}

/** One request as its handler sees it. */
export interface Exchange<Params, Query, Body> extends GuardedRequest {
  readonly headers: Headers;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly caller: Caller;
  /** Fires when the client goes away. */
  readonly signal: AbortSignal;
  /** The server span; its context is what goes to the next hop. */
  readonly span: Span;
  /** Logs with this request's trace ids. */
  readonly logger: Logger;
  /** Headers of the answer, for handlers that return a plain value. */
  readonly answerHeaders: Headers;
  /** The request itself, for what the rest does not show. */
  readonly request: Request;
  /**
   * Node's own response, for long streams: the handler writes it, from the head on, and returns `alreadyAnswered()`.
   * Undefined where the API is called without a listener.
   */
  readonly rawResponse: ServerResponse | undefined;
}

/** One request as the handler of a direct operation sees it. */
export type DirectExchange<Body> = GuardedRequest &
  Pick<Exchange<unknown, unknown, Body>, "body" | "caller" | "span" | "logger">;

/** One operation of an API. `path` is absolute with parameters in braces: `/api/v1/users/{id}`. */
export interface ApiRoute {
  readonly method: ApiMethod;
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  /** Group in the documentation. */
  readonly tag?: string;
  /** Default `guarded`. */
  readonly access?: Access;
  readonly params?: z.ZodType;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  readonly bodyKind?: BodyKind;
  /** May be answered without Fetch's objects: see `defineDirectRoute`. */
  readonly isDirect?: boolean;
  /** Overrides the API's bound for this operation. */
  readonly bodyBytesMax?: number;
  /** Status of success; default 200, or 204 where the handler returns undefined. */
  readonly status?: number;
  /** Schema of the answer's body: for types and documentation. */
  readonly answer?: z.ZodType;
  /** Media type of the answer in the documentation; default JSON. A string returned is sent as text. */
  readonly answerType?: string;
  /** Problem statuses worth documenting, with what they mean here. */
  readonly problems?: Readonly<Record<number, string>>;
  /**
   * Does the work. A plain value is sent as JSON, a string as text, undefined as 204, a Response as it is. Errors are
   * thrown as PlatformError.
   */
  readonly handle: (exchange: Exchange<never, never, never>) => unknown;
}

type Output<S, Otherwise> = S extends z.ZodType ? z.output<S> : Otherwise;
type Answer<A> = A extends z.ZodType ? z.input<A> | Response : unknown;

/** What a handler returns that writes `rawResponse` itself. `status` is the one it has sent, for logs and metrics. */
export function alreadyAnswered(status = 200): Response {
  return new Response(null, { status, headers: { "x-hono-already-sent": "true" } });
}

/** Defines an operation with the types of its schemas; the result goes into `createApi`. */
export function defineRoute<
  P extends z.ZodType | undefined = undefined,
  Q extends z.ZodType | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
  A extends z.ZodType | undefined = undefined,
  K extends BodyKind = "json",
>(
  route: Omit<ApiRoute, "handle" | "params" | "query" | "body" | "answer" | "bodyKind"> & {
    readonly params?: P;
    readonly query?: Q;
    readonly body?: B;
    readonly bodyKind?: K;
    readonly answer?: A;
    readonly handle: (
      exchange: Exchange<
        Output<P, Readonly<Record<string, string>>>,
        Output<Q, Readonly<Record<string, string | string[]>>>,
        K extends "bytes" ? Uint8Array<ArrayBuffer> : Output<B, undefined>
      >,
    ) => Answer<A> | Promise<Answer<A>>;
  },
): ApiRoute {
  return route as ApiRoute;
}

/**
 * Defines an operation that may be answered on node's own objects, for those that are asked thousands of times a second:
 * its path has no parameters, it takes a JSON body and no query, and answers a plain object. A listener that is given the
 * API's `intercept` uses the short way for it; both ways answer alike.
 */
export function defineDirectRoute<B extends z.ZodType>(
  route: Omit<
    ApiRoute,
    "handle" | "params" | "query" | "body" | "answer" | "answerType" | "bodyKind" | "isDirect"
  > & {
    readonly body: B;
    readonly handle: (exchange: DirectExchange<z.output<B>>) => Promise<object>;
  },
): ApiRoute {
  return { ...route, isDirect: true };
}
