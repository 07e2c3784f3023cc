// The request that handlers receive.
import type { Caller } from "@platform/kernel/identity";
import type { Logger } from "@platform/kernel/log";
import type { PathParams } from "../route/path.ts";
import type { RequestHeaders } from "./headers.ts";

/**
 * A request. `body` and `query` have the types of the route's schemas; without a schema, a body is `unknown` (parsed by
 * its Content-Type) and a query is a `URLSearchParams`.
 */
export interface ServiceRequest<
  Path extends string = string,
  Body = unknown,
  Query = URLSearchParams,
> {
  /** For example `GET`. */
  readonly method: string;
  /** The path as sent, without the query. */
  readonly path: string;
  /** Decoded parameters of the path. */
  readonly params: PathParams<Path>;
  readonly query: Query;
  /** Parsed before the handler runs; undefined if the request has none. */
  readonly body: Body;
  readonly headers: RequestHeaders;
  readonly cookies: Readonly<Record<string, string>>;
  /** The verified caller of routes with `requires`; anonymous otherwise. */
  readonly caller: Caller;
  /** IP address of the connection's peer: behind the gateway, of the gateway. "" on a Unix socket. */
  readonly remoteAddress: string;
  /** Aborted if the client disconnects, the handler takes too long, or the service stops. */
  readonly signal: AbortSignal;
  /** Trace id of the request: in its log lines, its span and its error responses. */
  readonly traceId: string;
  /** `traceparent` for requests to other services, so that they belong to this trace. */
  readonly traceparent: string;
  /** Logger whose lines have the trace id. */
  readonly log: Logger;
}
